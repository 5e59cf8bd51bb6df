"""The administrator's rules on dev pods: their namespaces, whose they are, and their groups."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...backends.kubernetes.mounts import mount_of
from ...backends.kubernetes.records import Manifest
from ...domain.errors import BadInput, Refused
from ..cluster.watches import ALL_NAMESPACES
from .variables import Variables

if TYPE_CHECKING:
    from ...wiring import Settings

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_RULES = "annotation=KEY, label=KEY, serviceaccount, claim or claim=PATH"


@dataclass(frozen=True)
class OwnerRule:
    """Where the name of a dev pod's owner stands: `source`, and for some of them a `key`.

    The sources are `annotation` and `label` (the key names it), `serviceaccount`, and `claim` (the
    key is the mount path of the workspace's root; without it the only claim counts).
    """

    source: str
    key: str = ""

    @classmethod
    def parse(cls, text: str) -> OwnerRule:
        """Read the setting. Raises BadInput for a rule that does not exist."""
        source, equals, key = (part.strip() for part in text.partition("="))
        is_valid = {
            "annotation": bool(key),
            "label": bool(key),
            "serviceaccount": not equals,
            "claim": key.startswith("/") if equals else True,
        }
        if not is_valid.get(source, False):
            raise BadInput(
                f"JUPYTER_TO_JOB_OWNER_RULE={text!r} is no rule.", f"It may be {_RULES}."
            )
        return cls(source, key)

    def name(self, pod: Manifest, origin: Manifest) -> str:
        """Return the owner's name by this rule. Raises Refused if the pod does not say it."""
        if self.source == "serviceaccount":
            return str(origin["service_account"])
        if self.source == "claim":
            return self._claim_name(origin)
        name = (pod["metadata"].get(f"{self.source}s") or {}).get(self.key)
        if not name or not name.strip():
            raise self._refusal(f"has no {self.source} {self.key!r}", origin)
        return str(name)

    def _claim_name(self, origin: Manifest) -> str:
        """Return the claim's name, with the sub path if the pod sees only that part of it.

        Users may have one claim together, a folder each.
        """
        mounts = [m for m in origin["mounts"] if m["claim"]]
        if self.key:
            mounts = [m for m in [mount_of(origin, self.key)] if m is not None and m["claim"]]
        if len(mounts) != 1:
            where = f"at {self.key}" if self.key else "alone: name its path with claim=PATH"
            raise self._refusal(f"has no claim {where}", origin)
        (mount,) = mounts
        if mount["sub_path"] is None:
            raise self._refusal("has a claim with a sub path that depends on variables", origin)
        return f"{mount['claim']}/{mount['sub_path']}".rstrip("/")

    def _refusal(self, problem: str, origin: Manifest) -> Refused:
        return Refused(
            f"The pod {origin['pod']} does not say whose it is: it {problem}.",
            "The administrator sets the rule with JUPYTER_TO_JOB_OWNER_RULE.",
        )


@dataclass(frozen=True)
class Tenants:
    """The rules of one controller.

    `groups_annotation` names the annotation with the groups of a dev pod's user, "" for none.
    `container` is the name of the container with the notebooks, and `variables` are those that
    come along from it. `unpinned_images`: jobs may run an image whose digest is not known.
    """

    namespaces: frozenset[str]
    owner_rule: OwnerRule
    owner_scope: str = "namespace"
    groups_annotation: str = ""
    container: str = "notebook"
    variables: Variables = field(default_factory=Variables)
    unpinned_images: bool = False

    @classmethod
    def from_settings(cls, settings: Settings) -> Tenants:
        """Return the rules that the settings say. Raises BadInput; nothing is guessed."""
        return cls(
            namespaces=parse_namespaces(settings.namespaces),
            owner_rule=OwnerRule.parse(settings.owner_rule),
            owner_scope=settings.owner_scope,
            groups_annotation=settings.groups_annotation,
            container=settings.container,
            variables=Variables.parse(settings.variables),
            unpinned_images=settings.unpinned_images,
        )

    def require_namespace(self, namespace: str) -> None:
        """Raise Refused for a namespace that is not listed."""
        if not {namespace, ALL_NAMESPACES} & self.namespaces:
            raise Refused(
                f"Pods in the namespace {namespace} may not submit jobs.",
                "The administrator lists namespaces in JUPYTER_TO_JOB_NAMESPACES.",
            )

    def owner(self, pod: Manifest, origin: Manifest) -> str:
        """Return the owner: `<namespace>/<name>`, or the name alone in the scope `cluster`.

        Raises Refused if the pod does not say the name.
        """
        name = self.owner_rule.name(pod, origin)
        if self.owner_scope == "namespace":
            return f"{origin['namespace']}/{name}"
        if self.owner_rule.source == "serviceaccount" and name == "default":
            raise Refused(
                "The service account `default` exists in every namespace and names nobody.",
                "Give each user's pods a service account of their own.",
            )
        return name

    def groups(self, pod: Manifest) -> frozenset[str]:
        """Return the groups that the pod's annotation lists, separated by commas."""
        annotations = pod["metadata"].get("annotations") or {}
        names = annotations.get(self.groups_annotation, "") if self.groups_annotation else ""
        return frozenset(filter(None, (name.strip() for name in names.split(","))))


def parse_namespaces(text: str) -> frozenset[str]:
    """Return the namespaces in a list with commas, or `*` alone. Raises BadInput."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadInput(
            "JUPYTER_TO_JOB_NAMESPACES is not set.",
            "List the namespaces of dev pods, separated by commas; `*` means all.",
        )
    if names == [ALL_NAMESPACES]:
        return frozenset(names)
    if invalid := [name for name in names if not _NAMESPACE.fullmatch(name)]:
        raise BadInput(
            f"JUPYTER_TO_JOB_NAMESPACES={text!r}: {invalid[0]!r} is no name of a namespace.",
            "List names, separated by commas; `*` alone means all namespaces.",
        )
    return frozenset(names)
