"""What Tab offers in a shell. Nothing here may fail or print: the shell would show it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from job_runner.protocol import layout

from ..domain.errors import JobsError
from . import session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MOST = 100


def candidates(kind: str, incomplete: str) -> list[CompletionItem]:
    """Return what of `kind` (job, flavor or device) begins with `incomplete`."""
    from click.shell_completion import CompletionItem

    found: list[CompletionItem] = []
    with contextlib.suppress(JobsError, OSError):
        for value, meaning in _KINDS[kind]():
            if value.startswith(incomplete):
                found.append(CompletionItem(value, help=meaning))
            if len(found) == MOST:
                break
    return found


def _jobs() -> Iterator[tuple[str, str | None]]:
    """Yield the names of jobs, newest first; on this machine without reading one of them."""
    settings = session.settings()
    if settings.gateway:
        for job in session.connect().find(limit=MOST).jobs:
            yield job.name, job.state.value
        return
    from ..exchange import FileExchange

    exchange = FileExchange(settings.exchange_root())
    ages = {}
    for name in exchange.jobs():
        with contextlib.suppress(OSError):  # deleted since
            ages[name] = (exchange.root / name / layout.REQUEST).stat().st_mtime
    for name in sorted(ages, key=lambda n: -ages[n]):
        yield name, None


def _flavors() -> Iterator[tuple[str, str | None]]:
    for name, flavor in session.connect().flavors()["flavors"].items():
        yield name, flavor.get("title")


def _devices() -> Iterator[tuple[str, str | None]]:
    for name, device in session.connect().flavors()["devices"].items():
        yield name, device.get("title")


_KINDS = {"job": _jobs, "flavor": _flavors, "device": _devices}
