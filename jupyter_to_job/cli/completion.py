"""The candidates of Tab completion. Nothing here may fail or print: the shell would show it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.errors import JobsError
from . import session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MAX_CANDIDATES = 100
MAX_NOTEBOOK = 16 << 20
"""Bytes of a notebook that is read while somebody waits for a completion."""
_ASSIGNMENT = re.compile(r"^([^\W\d]\w*)\s*(?::[^=\n]+)?=(?!=)[ \t]*(.*)$", re.M)


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


def find_parameters(
    names: Sequence[str], incomplete: str, *, of_jobs: bool
) -> list[CompletionItem]:
    """Return the parameters that begin with `incomplete`, with their defaults or values.

    `names` are those of notebooks, whose cells declare them, or of jobs, which had them.
    """
    from click.shell_completion import CompletionItem

    found: dict[str, str] = {}
    for name in names:
        with contextlib.suppress(
            JobsError, OSError, ValueError, LookupError, TypeError, AttributeError
        ):
            found.update(_of_job(name) if of_jobs else _of_notebook(Path(name)))
    matches = [
        CompletionItem(name, help=default)
        for name, default in found.items()
        if name.startswith(incomplete)
    ]
    return matches[:MAX_CANDIDATES]


def _of_job(name: str) -> Iterator[tuple[str, str]]:
    for key, value in session.connect().get(name).parameters.items():
        yield key, json.dumps(value)


def _of_notebook(path: Path) -> Iterator[tuple[str, str]]:
    """Yield names and defaults of a notebook's parameters. Papermill itself would take a second."""
    if path.stat().st_size > MAX_NOTEBOOK:
        return
    for cell in json.loads(path.read_bytes())["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            yield from _ASSIGNMENT.findall("".join(cell["source"]))
