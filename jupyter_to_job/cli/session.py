"""The service that a command talks to, and jobs looked up by what a user typed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..domain.errors import Cleared, JobsError, NotFound, Unavailable
from ..domain.job import Job
from . import exits
from .display import output

if TYPE_CHECKING:
    from ..service.port import Jobs
    from ..wiring import Settings

Answer = TypeVar("Answer")
_NAMES_LOOKED_AT = 500


@functools.cache
def settings() -> Settings:
    """Return the settings of this process. Raises BadInput."""
    from ..wiring.settings import Settings

    return Settings.load()


def workspace() -> Path:
    """Return the command line's workspace: as set, else the current directory."""
    return Path(settings().workspace or ".").absolute()


def connect(root: Path | None = None) -> Jobs:
    """Return the service for the workspace `root`; by default the command line's."""
    return _connect(root or workspace())


@functools.cache
def _connect(root: Path) -> Jobs:
    from ..wiring import connect as wire

    return wire(settings(), root)


def look_up(service: Jobs, name: str) -> Job:
    """Return the job, or raise NotFound with the names that may have been meant."""
    return with_name_hint(service, name, service.get)


def with_name_hint(service: Jobs, name: str, act: Callable[[str], Answer]) -> Answer:
    """Return `act(name)`; if there is no such job, raise NotFound with what may be meant."""
    try:
        return act(name)
    except Cleared:
        raise
    except NotFound as error:
        likely = _likely(service, name)
        if not likely:
            raise
        raise NotFound(error.message, f"Did you mean {' or '.join(likely)}?") from error


def _likely(service: Jobs, name: str) -> list[str]:
    """Return up to three names that begin with `name`, else those that are nearly it."""
    from difflib import get_close_matches

    try:
        names = [job.name for job in service.find(limit=_NAMES_LOOKED_AT).jobs]
    except JobsError:  # the error that is being explained is the one to tell
        return []
    return [n for n in names if n.startswith(name)][:3] or get_close_matches(name, names, n=3)


def for_each(
    service: Jobs, names: Iterable[str], act: Callable[[str], Answer]
) -> tuple[list[Answer], int]:
    """Act on each job; one that fails is told and does not stop the others.

    Returns the answers and the worst exit code. An unreachable backend ends it at once: it would
    fail, slowly, for each.
    """
    answers: list[Answer] = []
    code = exits.SUCCEEDED
    for name in dict.fromkeys(names):
        try:
            answers.append(with_name_hint(service, name, act))
        except Unavailable:
            raise
        except JobsError as error:
            output.problem(error)
            code = max(code, exits.code_of(error))
    return answers, code


def answer(jobs: list[dict[str, Any]], asked: Iterable[str]) -> None:
    """Print jobs as JSON: the one that was asked for, or a list where several were."""
    if len(tuple(asked)) > 1:
        output.document(jobs)
    elif jobs:
        output.document(jobs[0])
