"""What became of telling a hook of an event of a job: `show` says it, notifications.json has it."""

from __future__ import annotations

from dataclasses import dataclass

PENDING, SENT, GIVEN_UP = "pending", "sent", "given_up"


@dataclass(frozen=True)
class HookNotification:
    """One event of a job for one hook.

    `state` is `pending` (it is tried, or tried again), `sent` or `given_up`. `tries` have begun,
    the latest at `time`: none while the hook is told of others, since `time`. `message` says why
    the latest one failed.
    """

    hook: str
    event: str
    state: str
    tries: int
    time: str
    message: str | None = None
