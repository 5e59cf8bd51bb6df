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


def error_of_answer(status: int | None, body: str | None, reason: str | None) -> JobsError:
    """Return our error for an answer; `reason` is what it says where its body has no message."""
    try:
        answer: Manifest = json.loads(body or "")
        message = str(answer["message"])
        causes = [cause.get("reason") for cause in (answer.get("details") or {}).get("causes", ())]
    except (TypeError, ValueError, KeyError, AttributeError):
        message, causes = str(reason), []
    kind = _ERRORS_BY_STATUS.get(status, Unavailable)
    if "NamespaceTerminating" in causes:
        kind = NotFound
    elif any(words in message for words in _WORDS_OF_POLICIES):
        kind = Refused
    return kind(f"{WORD_OF_CLUSTER} {status}: {message}")
