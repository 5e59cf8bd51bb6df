"""Checks the hooks: can their files be used, and was anything given up? Sends a test to each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from job_runner.protocol import layout, times
from job_runner.protocol.units import format_duration

from ...domain.errors import JobsError
from ...domain.notification import GIVEN_UP, HookNotification
from .. import session
from ..display import formats
from .result import CheckResult, ok, problem, warning

if TYPE_CHECKING:
    from ...exchange import FileExchange

GIVEN_UP_FOR = timedelta(days=1)
"""How long it is told that something was given up."""
_MAX_TOLD = 5
_SECRET_MODE = 0o077


def check_hooks() -> Iterator[CheckResult]:
    """Check the files with the hooks, and what became of the notifications of the last day."""
    files = session.settings().hook_files()
    if not files:
        yield ok("None: nobody is told of jobs outside the browser")
        return
    from ...notifications.hooks import load_hooks

    for hook in load_hooks(files):
        events = (f"{e} {format_duration(limit)}" if limit else e for e, limit in hook.when.items())
        yield ok(f"{hook.name}: {hook.target}, {', '.join(events).replace('_', ' ')}")
    for path in files:
        status = path.stat()
        if status.st_uid == os.getuid() and status.st_mode & _SECRET_MODE:
            yield warning(f"Others may read {path}.", f"chmod 600 {path}")
    yield from _given_up(session.settings().exchange_root())


def check_unused_hooks() -> Iterator[CheckResult]:
    """Warn of hooks of a dev pod: its jobs are the controller's, and it has hooks of its own."""
    for path in session.settings().hook_files():
        yield warning(
            f"{path} is not used: a controller runs the jobs.",
            "Ask your administrator to add the hook to the controller's.",
        )


def send_tests() -> Iterator[CheckResult]:
    """Send a test to each hook, as an end of a job would be told."""
    files = session.settings().hook_files()
    if not files:
        yield problem("There are no hooks.", "docs/notifications.md says how to write them.")
        return
    from ...notifications.failure import NotSent
    from ...notifications.hooks import load_hooks
    from ...notifications.message import sample_message
    from ...notifications.sending import send

    for hook in load_hooks(files):
        try:
            send(hook, sample_message(hook))
        except NotSent as error:
            yield problem(f"{hook.name}: not sent: {error.message}")
        else:
            yield ok(f"{hook.name}: sent")


def _given_up(root: Path) -> Iterator[CheckResult]:
    """Yield what was given up in the last day, the newest first."""
    from ...exchange import FileExchange

    exchange = FileExchange(root)
    since = times.rfc3339(datetime.now(timezone.utc) - GIVEN_UP_FOR)
    notifications = sorted(_notifications(exchange, since), key=lambda f: f[1].time, reverse=True)
    for name, notification in notifications[:_MAX_TOLD]:
        event = notification.event.replace("_", " ")
        text = f"{name}: {notification.hook} was not told: {event}. {notification.message or ''}"
        yield warning(
            text.rstrip(), "Mend the hook, and try it with `jupyter-to-job doctor --notify`."
        )
    if len(notifications) > _MAX_TOLD:
        more = formats.plural(len(notifications) - _MAX_TOLD, "notification")
        yield warning(f"{more} more were given up.", "`jupyter-to-job show` tells those of a job.")


def _notifications(exchange: FileExchange, since: str) -> Iterator[tuple[str, HookNotification]]:
    from ...exchange.records import NotificationsRecord

    for name in exchange.jobs():
        if not os.path.exists(f"{exchange.root}/{name}/{layout.NOTIFICATIONS}"):  # noqa: PTH110
            continue
        try:
            record = exchange.record(name, layout.NOTIFICATIONS, NotificationsRecord)
        except JobsError:  # removed just now, or damaged: `jobs` tells
            continue
        for notification in record.notifications if record is not None else ():
            if notification.state == GIVEN_UP and notification.time >= since:
                yield name, notification
