"""Plain words for what the API server says when it refuses a Job or a pod.

The same sentence is said before a submission, by preflight, and of a job that waits after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...domain.errors import BadInput
from ...domain.quantities import parse_quantity

Kind = Literal["quota", "limit_range", "pod_security", "policy", "rights", "invalid", "other"]
WORD_OF_CLUSTER = "Kubernetes answered"
"""How messages begin that are the API server's own."""
_ASK = "Choose another flavor or device, or ask your administrator."
_MAYBE_THE_AGENT = (
    "Choose another flavor or device. If each is refused, it may be the agent's container: the "
    "administrator sets its resources in the pod patch."
)
"""Kubernetes does not say which container a limit range refuses."""


@dataclass(frozen=True)
class Refusal:
    """Why the cluster refuses a Job or its pod.

    `kind` is who refuses it. `passes`: it is refused only now, and may be taken later as it is.
    """

    kind: Kind
    message: str
    hint: str
    passes: bool = False

    @property
    def reason(self) -> str:
        """The reason of a job that waits because of it."""
        return "QuotaExceeded" if self.kind == "quota" else "BackendError"

    @property
    def sentence(self) -> str:
        """What happened, and what to do."""
        return f"{self.message} {self.hint}".strip()


def explain_refusal(answer: str) -> Refusal:
    """Return the refusal in an error of the API server, or in an event of a Job."""
    text = _PREFIX.sub("", answer.strip())
    for pattern, make in _KINDS:
        if (match := pattern.search(text)) is not None:
            return make(match)
    return Refusal("other", f"The cluster refuses the job: {_ended(text)}", _ASK)


_PREFIX = re.compile(
    rf"^({WORD_OF_CLUSTER} \d+: )?(Error creating: )?([\w.]+ \"[^\"]*\" is forbidden: )?"
)


def _quota(match: re.Match[str]) -> Refusal:
    name = match["name"]
    request, used, limits = (_amounts(match[key]) for key in ("asked", "used", "limits"))
    if any(_is_more(request[r], limits.get(r, "0")) for r in request):
        details = "; ".join(
            f"{request[r]} {_what(r)} of {limits.get(r, '0')} allowed" for r in request
        )
        return Refusal(
            "quota", f"The namespace's quota {name!r} is too small: the job asks for {details}.",
            "Choose a smaller flavor, or ask your administrator.",
        )  # fmt: skip
    details = "; ".join(
        f"{request[r]} {_what(r)}, and {used.get(r, '0')} of {limits.get(r, '0')} are in use"
        for r in request
    )
    return Refusal(
        "quota",
        f"The namespace's quota {name!r} has no room now: the job asks for {details}.",
        "It waits until others have ended.",
        passes=True,
    )


def _bare_quota(match: re.Match[str]) -> Refusal:
    message = f"A quota of the namespace has no room now: {_ended(match['text'])}"
    return Refusal("quota", message, "The job waits until others have ended.", passes=True)


def _unspecified(match: re.Match[str]) -> Refusal:
    parts = _UNSPECIFIED.findall(match["what"].rstrip("."))
    what = "; ".join(_unspecified_in(*part) for part in parts)
    return Refusal(
        "quota",
        f"The namespace's quota {match['name']!r} wants every container to say its {what}.",
        "The administrator sets that of the notebook in the catalog, that of the agent in the pod "
        "patch, or both by a LimitRange.",
    )


def _unspecified_in(resource: str, containers: str) -> str:
    """Return a resource with the containers that do not say it; old clusters name none."""
    names = containers.replace(",", ", ")
    return f"{resource} (not said by {names})" if names else resource


_UNSPECIFIED = re.compile(r"([^\s;]+)(?: for: ([^\s;]+))?")


def _limit_range(match: re.Match[str]) -> Refusal:
    text = match.string.strip("[]")
    return Refusal(
        "limit_range",
        f"A limit range of the namespace refuses it: {_ended(text)}",
        _MAYBE_THE_AGENT,
    )


def _pod_security(match: re.Match[str]) -> Refusal:
    level = match["level"].partition(":")[0]
    return Refusal(
        "pod_security",
        f"The namespace's Pod Security ({level}) refuses the pod: {_ended(match['text'])}",
        "The administrator changes the dev pod's user and image, or the namespace's level.",
    )


def _policy(match: re.Match[str]) -> Refusal:
    message = f"The cluster's policy {match['name']!r} refuses it: {_ended(match['text'])}"
    return Refusal("policy", message, _ASK)


def _rights(match: re.Match[str]) -> Refusal:
    act, namespace = f"{match['verb']} {match['what']}", match["namespace"]
    return Refusal(
        "rights",
        f"The controller may not {act} in the namespace {namespace}.",
        "The administrator applies the Role of k8s/dev-namespace there.",
    )


def _invalid(match: re.Match[str]) -> Refusal:
    return Refusal(
        "invalid",
        f"Kubernetes does not accept the job: {_ended(match['text'])}",
        "The administrator checks this flavor and device in the catalog.",
    )


_KINDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Refusal]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), make)
    for pattern, make in (
        (
            r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<asked>\S+), used: (?P<used>\S+), "
            r"limited: (?P<limits>[^\s]+)",
            _quota,
        ),
        (r"exceeded quota: (?P<text>.*)", _bare_quota),
        (r"failed quota: (?P<name>\S+): must specify (?P<what>.+)", _unspecified),
        (r"(minimum|maximum) \S+ usage per |max limit to request ratio per ", _limit_range),
        (r'violates PodSecurity "(?P<level>[^"]*)": (?P<text>.*)', _pod_security),
        (r'admission webhook "(?P<name>[^"]*)" denied the request: ?(?P<text>.*)', _policy),
        (
            r"ValidatingAdmissionPolicy '(?P<name>[^']*)' with binding '[^']*' denied request: "
            r"(?P<text>.*)",
            _policy,
        ),
        (
            r'cannot (?P<verb>\w+) resource "(?P<what>[^"]*)".* '
            r'in the namespace "(?P<namespace>[^"]*)"',
            _rights,
        ),
        (r'^\w+(\.\w+)* "[^"]*" is invalid: (?P<text>.*)', _invalid),
    )
)


def _amounts(text: str) -> dict[str, str]:
    """Return the amounts in `cpu=1,memory=2Gi`."""
    pairs = (entry.partition("=") for entry in text.split(",") if "=" in entry)
    return {name: amount.rstrip(".") for name, _, amount in pairs}


def _is_more(amount: str, limit: str) -> bool:
    """Tell whether an amount is over a limit; not if one of them is spelled in a rare way."""
    try:
        return parse_quantity(amount) > parse_quantity(limit)
    except BadInput:
        return False


def _what(resource: str) -> str:
    """Return a quota's name of a resource as people say it."""
    name = resource.removeprefix("count/").removeprefix("requests.").removeprefix("limits.")
    return {"jobs.batch": "Jobs", "cpu": "CPU"}.get(name, name)


def _ended(text: str) -> str:
    """Return a text as the end of a sentence."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
