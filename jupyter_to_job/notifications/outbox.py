"""The two documents by which no notification is lost: what may be owed, and what became of it.

`notify.json` is written with the submission, and removed when nothing more is to be told of the
job. `notifications.json` is written before each try and after it. So a process that begins anew
goes on with what is owed, and repeats a try of which nobody knows how it ended.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict

from job_runner.protocol import layout

from ..domain.errors import Damaged
from ..domain.notification import PENDING, HookNotification
from ..exchange import FileExchange
from ..exchange.records import NotificationsRecord

Key = tuple[str, str]
"""Names of a hook and of an event."""


class Outbox:
    """The notifications of one job, as its directory had them when they were read.

    Raises errors of our tree.
    """

    def __init__(self, exchange: FileExchange, job: str) -> None:
        self._exchange = exchange
        self._job = job
        self.notifications: dict[Key, HookNotification] = {}

    def read(self) -> None:
        """Read the notifications."""
        record = None
        with contextlib.suppress(Damaged):  # it is written anew: better told twice than never
            record = self._exchange.record(self._job, layout.NOTIFICATIONS, NotificationsRecord)
        notifications = record.notifications if record is not None else ()
        self.notifications = {_key(notification): notification for notification in notifications}

    def pending(self) -> list[HookNotification]:
        """Return what is neither sent nor given up."""
        return [n for n in self.notifications.values() if n.state == PENDING]

    def write(self, notification: HookNotification) -> None:
        """Record how a notification stands."""
        notifications = {**self.notifications, _key(notification): notification}
        documents = [asdict(n) for n in notifications.values()]
        self._exchange.write(self._job, layout.NOTIFICATIONS, {"notifications": documents})
        self.notifications = notifications

    def close(self) -> None:
        """Record that nothing more is to be told of the job."""
        with contextlib.suppress(FileNotFoundError):
            (self._exchange.directory(self._job) / layout.NOTIFY).unlink()


def is_owed(exchange: FileExchange, job: str) -> bool:
    """Tell whether hooks may have to be told of a job. Raises OSError if that is out of reach."""
    try:
        os.lstat(f"{exchange.root}/{job}/{layout.NOTIFY}")
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _key(notification: HookNotification) -> Key:
    return notification.hook, notification.event
