"""Sends in threads, so that nothing waits for a receiver that is slow."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from .failure import NotSent
from .hooks import Hook
from .message import HookMessage

_log = logging.getLogger(__name__)


_ALLOWANCE = 2.0
"""Seconds beyond a hook's time limit after which nobody waits for its thread any more."""


def send(hook: Hook, message: HookMessage) -> None:
    """Send one notification, within the time limit of its hook. Raises NotSent.

    The libraries limit each step; a receiver that answers a byte at a time is limited here.
    """
    ends: queue.Queue[NotSent | None] = queue.Queue()
    threading.Thread(target=_send, args=(hook, message, ends), daemon=True).start()
    try:
        failure = ends.get(timeout=hook.timeout + _ALLOWANCE)
    except queue.Empty:
        raise NotSent(f"It took longer than {hook.timeout} s.") from None
    if failure is not None:
        raise failure


def _send(hook: Hook, message: HookMessage, ends: queue.Queue[NotSent | None]) -> None:
    """Send a notification, and tell how that ended."""
    failure = None
    try:
        _sender_of(hook)(hook, message)
    except NotSent as error:
        failure = error
    except Exception as error:
        _log.exception("the hook %s", hook.name)
        failure = NotSent(f"An error of ours: {type(error).__name__}.")
    ends.put(failure)


def _sender_of(hook: Hook) -> Callable[[Hook, HookMessage], None]:
    """Return what sends to a target. Its libraries are imported only where they are needed."""
    if hook.target == "command":
        from .command import run_command

        return run_command
    if hook.target == "mail":
        from .mail import send_mail

        return send_mail
    from .webhook import post

    return post


@dataclass(frozen=True)
class TryResult:
    """The end of a try; `failure` is None if the notification was sent."""

    job: str
    hook: str
    event: str
    failure: NotSent | None


class Senders:
    """Sends notifications in threads. `results` gets one `TryResult` for each."""

    def __init__(self) -> None:
        self.results: queue.Queue[TryResult] = queue.Queue()

    def start(self, job: str, hook: Hook, message: HookMessage) -> None:
        """Begin to send a notification."""
        # A daemon: what is being sent when this process ends is sent again by the next one.
        threading.Thread(target=self._try, args=(job, hook, message), daemon=True).start()

    def _try(self, job: str, hook: Hook, message: HookMessage) -> None:
        failure = None
        try:
            send(hook, message)
        except NotSent as error:
            failure = error
        self.results.put(TryResult(job, hook.name, message.event, failure))
