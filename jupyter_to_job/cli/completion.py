"""The candidates of Tab completion. Nothing here may fail or print: the shell would show it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from job_runner.protocol import layout

from ..domain.errors import JobsError
from . import session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAX_CANDIDATES = 100


def find_candidates(kind: str, incomplete: str) -> list[CompletionItem]:
    """Return the candidates of a kind (job, flavor or device) that begin with `incomplete`."""
    from click.shell_completion import CompletionItem

    candidates: list[CompletionItem] = []
    with contextlib.suppress(JobsError, OSError):
        for value, description in _KINDS[kind]():
            if value.startswith(incomplete):
                candidates.append(CompletionItem(value, help=description))
            if len(candidates) == MAX_CANDIDATES:
                break
    return candidates


def _jobs() -> Iterator[tuple[str, str | None]]:
    """Yield the names of jobs, newest first. Local jobs are not read, only their files' times."""
    settings = session.settings()
    if settings.gateway:
        for job in session.connect().find(limit=MAX_CANDIDATES).jobs:
            yield job.name, job.state.value
        return
    from ..exchange import FileExchange

    exchange = FileExchange(settings.exchange_root())
    times = {}
    for name in exchange.jobs():
        with contextlib.suppress(OSError):  # deleted in the meantime
            times[name] = (exchange.root / name / layout.REQUEST).stat().st_mtime
    for name in sorted(times, key=times.__getitem__, reverse=True):
        yield name, None


def _flavors() -> Iterator[tuple[str, str | None]]:
    for name, flavor in session.connect().flavors()["flavors"].items():
        yield name, flavor.get("title")


def _devices() -> Iterator[tuple[str, str | None]]:
    for name, device in session.connect().flavors()["devices"].items():
        yield name, device.get("title")


_KINDS = {"job": _jobs, "flavor": _flavors, "device": _devices}
