"""Errors to status codes, in one place; the body is `{"error": {code, message, hint}}`."""

from __future__ import annotations

from ..domain.errors import (
    BadCatalog,
    BadInput,
    Conflict,
    JobsError,
    NotFound,
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
    (TimedOut, 408),
    (Unavailable, 503),
    (BadCatalog, 500),  # the admin's mistake, not the caller's
    (BadInput, 400),
)


def error_response(error: JobsError) -> ApiResponse:
    """Return the response for an error of our tree."""
    status = next((code for cls, code in _STATUS if isinstance(error, cls)), 500)
    headers = {"Retry-After": "2"} if error.retryable else {}
    length = getattr(error, "length", None)
    extra = {} if length is None else {"length": length}
    body = {"code": error.code, "message": error.message, "hint": error.hint, **extra}
    return ApiResponse.json(status, {"error": body}, **headers)
