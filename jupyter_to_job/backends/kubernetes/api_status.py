"""The API server's answers that are errors, as errors of ours."""

from __future__ import annotations

import json

from ...domain.errors import BadInput, Conflict, JobsError, NotFound, Refused, Unavailable
from .records import Manifest
from .refusals import WORD_OF_CLUSTER

_ERRORS_BY_STATUS: dict[int | None, type[JobsError]] = {
    400: BadInput,
    403: Refused,
    404: NotFound,
    409: Conflict,
    422: BadInput,
}
_WORDS_OF_POLICIES = ("denied the request", "denied request")
"""What the API server says of a webhook, and of a ValidatingAdmissionPolicy, under any status."""
_WORD_OF_OTHERS = "Something else than Kubernetes answered"
"""How messages begin of answers that have a status of the API server, and not its form."""


def error_of_answer(status: int | None, body: str | None, reason: str | None) -> JobsError:
    """Return our error for an answer; `reason` is what it says where its body has no message.

    Only a `Status` of Kubernetes tells of objects and rights. A load balancer in front may send a
    page with any status. The API server sends text where it is busy or fails, and for paths that it
    does not serve. None of these says that an object is gone: they are Unavailable.
    """
    try:
        answer: Manifest = json.loads(body or "")
        message = str(answer.get("message") or reason)
        causes = [cause.get("reason") for cause in (answer.get("details") or {}).get("causes", ())]
        is_status = answer.get("kind") == "Status"
    except (TypeError, ValueError, AttributeError):
        message, causes, is_status = str(reason), [], False
    kind = _ERRORS_BY_STATUS.get(status, Unavailable)
    if not is_status:
        words = WORD_OF_CLUSTER if kind is Unavailable else _WORD_OF_OTHERS
        return Unavailable(f"{words} {status}: {message}")
    if "NamespaceTerminating" in causes:
        kind = NotFound
    elif any(words in message for words in _WORDS_OF_POLICIES):
        kind = Refused
    return kind(f"{WORD_OF_CLUSTER} {status}: {message}")
