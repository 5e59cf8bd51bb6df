"""The service that a command talks to, and looking up jobs by the names that a user typed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.errors import Cleared, JobsError, NotFound, Unavailable
from ..domain.job import Job
from . import exits
from .display import output

if TYPE_CHECKING:
    from ..service.port import Jobs
    from ..wiring import Settings

LIST_HINT = "See `jupyter-to-job list --all`."
MAX_NAMES = 500
"""Names of the newest jobs, among which those are looked for that somebody meant."""


@functools.cache
def settings() -> Settings:
    """Return the settings of this process. Raises BadInput."""
    from ..wiring.settings import Settings

    return Settings.load()


def workspace() -> Path:
    """Return the command line's workspace: from the settings, else the current directory."""
    return Path(settings().workspace or ".").absolute()


@functools.cache
def connect(root: Path | None = None) -> Jobs:
    """Return the service for the workspace `root`; by default the command line's.

    What it asks a gateway has one id, for one command.
    """
    from ..wiring import connect as connect_service

    service = connect_service(settings(), root or workspace())
    if service.pulls:
        from .. import logs

        logs.add_context(request_id=logs.new_request_id())
    return service


def with_name_hint(service: Jobs, name: str, action: Callable[[str], Job]) -> Job:
    """Return `action(name)`. If there is no such job, raise NotFound with what to do about it."""
    try:
        return action(name)
    except Cleared:
        raise
    except NotFound as error:
        names = _similar_names(service, name)
        hint = f"Did you mean {' or '.join(names)}?" if names else error.hint or LIST_HINT
        raise NotFound(error.message, hint) from error


def _similar_names(service: Jobs, name: str) -> list[str]:
    """Return up to three names of jobs that begin with `name`, else the most similar ones."""
    from difflib import get_close_matches

    try:
        names = [job.name for job in service.find(limit=MAX_NAMES).jobs]
    except JobsError:  # the user needs the first error, not this one
        return []
    return [n for n in names if n.startswith(name)][:3] or get_close_matches(name, names, n=3)


def for_each(
    service: Jobs, names: Iterable[str], action: Callable[[str], Job]
) -> tuple[list[Job], int]:
    """Apply `action` to each job. A failure is printed and does not stop the others.

    Returns the jobs and the worst exit code. An unreachable backend ends it: it would fail, slowly,
    for every other job too.
    """
    jobs: list[Job] = []
    code = exits.SUCCEEDED
    for name in dict.fromkeys(names):
        try:
            jobs.append(with_name_hint(service, name, action))
        except JobsError as error:
            output.print_error(error)
            code = max(code, exits.code_of_error(error))
            if isinstance(error, Unavailable):
                break
    return jobs, code


def print_jobs(
    jobs: Sequence[Job], *, as_list: bool, roots: Mapping[str, Path] | None = None
) -> None:
    """Print jobs as JSON: a list, or the document of the only job (nothing if there is none).

    `roots` maps a job's name to the workspace of its paths, by default the command line's. They
    are printed relative to the command line's.
    """
    documents = [_for_workspace(job, (roots or {}).get(job.name)).to_json() for job in jobs]
    if as_list:
        output.print_json(documents)
    elif documents:
        output.print_json(documents[0])


def _for_workspace(job: Job, root: Path | None) -> Job:
    """Return a job of the workspace `root` with paths relative to the command line's."""
    if root in (None, workspace()):
        return job
    from ..service.jobs import path_converter

    return job.with_paths(path_converter(str(root.resolve()), str(workspace().resolve())))
