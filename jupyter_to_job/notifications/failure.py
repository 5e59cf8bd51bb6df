"""Why a notification was not sent, and whether it is worth another try."""

from __future__ import annotations


class NotSent(Exception):
    """A try failed. `message` has no address and no secret: users read it.

    `is_final`: another try would fail, too. `retry_after` are the seconds that the receiver wants
    to be left alone.
    """

    def __init__(
        self, message: str, *, is_final: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.is_final = is_final
        self.retry_after = retry_after
