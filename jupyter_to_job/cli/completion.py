"""The candidates of Tab completion. Nothing here may fail or print: the shell would show it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ..domain.errors import JobsError
from . import session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAX_CANDIDATES = 100


def find_candidates(kind: str, incomplete: str) -> list[CompletionItem]:
    """Return the candidates of a kind (job, group, flavor, device) that begin with `incomplete`."""
    from click.shell_completion import CompletionItem

    descriptions: dict[str, str] = {}
    with contextlib.suppress(JobsError, OSError):
        service = session.connect()
        if kind == "job":
            jobs = service.find(limit=session.MAX_NAMES).jobs
            descriptions = {job.name: job.state.value for job in jobs}
        elif kind == "group":
            jobs = service.find(limit=session.MAX_NAMES).jobs
            descriptions = {job.group: "" for job in jobs if job.group is not None}
        else:
            entries = service.flavors()[f"{kind}s"]
            descriptions = {name: entry["title"] for name, entry in entries.items()}
    matches = [
        CompletionItem(name, help=text)
        for name, text in descriptions.items()
        if name.startswith(incomplete)
    ]
    return matches[:MAX_CANDIDATES]
