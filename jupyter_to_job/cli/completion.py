"""The candidates of Tab completion. Nothing here may fail or print: the shell would show it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.errors import JobsError
from . import session

if TYPE_CHECKING:
    from click import Context
    from click.shell_completion import CompletionItem

    from ..domain.job import Job

MAX_CANDIDATES = 100
MAX_DESCRIPTION = 40


def find_candidates(kind: str, incomplete: str) -> list[CompletionItem]:
    """Return the candidates of a kind (job, group, flavor, device) that begin with `incomplete`."""
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
    return _items(descriptions, incomplete)


def find_parameters(
    context: Context, incomplete: str, *, of_job_only: bool
) -> list[CompletionItem]:
    """Return the parameters that begin with `incomplete`, less those that the command line has.

    For `submit` they are the notebook's, for `rerun` also the job's, with `of_job_only` only these.
    """
    descriptions: dict[str, str] = {}
    # Behind an option without its values click leaves the arguments here.
    arguments = [str(Path(word).expanduser()) for word in context.args]
    with contextlib.suppress(JobsError, OSError):
        if "notebooks" in context.params:
            descriptions = _of_notebooks(arguments)
        else:
            descriptions = _of_job(arguments, context.params["group"], with_source=not of_job_only)
    parameters = [*context.params["parsed_parameters"], *context.params["text_parameters"]]
    for name, _ in () if of_job_only else parameters:
        descriptions.pop(name, None)
    return _items(descriptions, incomplete)


def _of_notebooks(arguments: list[str]) -> dict[str, str]:
    """Return the parameters of the first notebook that the arguments mean, with their defaults."""
    from .arguments.notebooks import select_notebooks

    sources = select_notebooks(tuple(map(Path, arguments))).sources
    return _declared(sources[0].root / sources[0].path) if sources else {}


def _of_job(arguments: list[str], group: str | None, *, with_source: bool) -> dict[str, str]:
    """Return the parameters of the first job that is meant, with their values."""
    from . import selection

    if not arguments and group is None:
        return {}
    service = session.connect()
    names = selection.select_names(service, arguments, group)
    job: Job = service.get(names[0])
    values = {name: json.dumps(value) for name, value in job.parameters.items()}
    source = session.workspace() / job.notebook
    return {**_declared(source), **values} if with_source and source.is_file() else values


def _declared(notebook: Path) -> dict[str, str]:
    """Return the parameters that a notebook declares, each with its default and its comment."""
    import subprocess

    from ..exchange.request import Environment
    from ..service.submitting.parameters import inspect_parameters

    environment = Environment(sys.executable, variables=dict(os.environ))
    with contextlib.suppress(JobsError, OSError, ValueError, subprocess.SubprocessError):
        parameters = inspect_parameters(notebook, environment) or ()
        return {p.name: " # ".join(filter(None, (p.default, p.help))) for p in parameters}
    return {}


def _items(descriptions: Mapping[str, str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    matches = [
        CompletionItem(name, help=" ".join(text.split())[:MAX_DESCRIPTION])
        for name, text in descriptions.items()
        if name.startswith(incomplete)
    ]
    return matches[:MAX_CANDIDATES]
