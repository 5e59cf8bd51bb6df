"""Errors to status codes, in one place; the body is `{"error": {code, message, hint}}`."""

from __future__ import annotations

from .. import logs
from ..domain.errors import (
    BadCatalog,
    BadInput,
    Conflict,
    JobsError,
    NotFound,
    PartlySubmitted,
    Refused,
    StorageFull,
    TimedOut,
    TooLarge,
    Unavailable,
)
from .http import ApiResponse

_STATUS: tuple[tuple[type[JobsError], int], ...] = (
    (NotFound, 404),
    (Refused, 403),
    (Conflict, 409),
    (TooLarge, 413),
    (StorageFull, 507),
    (PartlySubmitted, 503),
    (TimedOut, 408),
    (Unavailable, 503),
    (BadCatalog, 500),  # the admin's mistake, not the caller's
    (BadInput, 400),
)


def error_response(error: JobsError, request_id: str | None = None) -> ApiResponse:
    """Return the response for an error of our tree, for a request with this id, or the present one.

    The answer names it where an administrator's log says more than the user can know.
    """
    status = next((code for cls, code in _STATUS if isinstance(error, cls)), 500)
    headers = {"Retry-After": "2"} if error.retryable else {}
    length = getattr(error, "length", None)
    extra = {} if length is None else {"length": length}
    request_id = error.request_id or request_id or logs.request_id()
    if request_id and not error.is_caller_at_fault:
        extra["request_id"] = request_id
    body = {"code": error.code, "message": error.message, "hint": error.hint, **extra}
    return ApiResponse.json(status, {"error": body}, **headers)
