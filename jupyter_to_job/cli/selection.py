"""Which jobs a command means: names, patterns as in shells, and groups."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import click

from ..domain.errors import NotFound, no_group
from ..domain.job import Job, State
from ..service.port import Jobs, all_jobs
from . import exits, session
from .display import formats, output

ASK_ABOVE = 10
"""Jobs that a command takes without a question on a terminal."""
_MAGIC = "*?["


def is_several(arguments: Sequence[str], group: str | None) -> bool:
    """Tell whether arguments may mean several jobs: then a list is printed as JSON."""
    return len(arguments) != 1 or group is not None or is_pattern(arguments[0])


def select_names(
    service: Jobs,
    arguments: Sequence[str],
    group: str | None,
    condition: Callable[[Job], bool] = lambda _job: True,
) -> list[str]:
    """Return the names of the jobs that are meant, in the order of their submission.

    Names that are given as such are not looked up. Of patterns and groups only jobs that
    meet `condition` count. Raises UsageError for no argument at all, and NotFound as
    `find_matching` does.
    """
    if not arguments and group is None:
        raise click.UsageError("Name a JOB, a pattern in quotes, or a --group.")
    named = [a for a in arguments if group is None and not is_pattern(a)]
    if len(named) == len(arguments) and group is None:
        return named
    matches = find_matching(service, arguments, group)
    return list(dict.fromkeys(named + [job.name for job in matches if condition(job)]))


def find_matching(service: Jobs, arguments: Sequence[str], group: str | None) -> list[Job]:
    """Return the jobs whose names match a pattern, of a group if one is named, the oldest first.

    A group without arguments means all of its jobs. Raises NotFound for a group or a pattern that
    no job belongs to.
    """
    jobs = all_jobs(service, group=group)[::-1]
    if group is not None and not jobs:
        raise NotFound(no_group(group).message, session.LIST_HINT)
    patterns = [a for a in arguments if group is not None or is_pattern(a)]
    place = f" in the group {group}" if group else ""
    for pattern in patterns:
        if not any(fnmatchcase(job.name, pattern) for job in jobs):
            raise NotFound(f"No job{place} matches {pattern!r}.", session.LIST_HINT)
    if not patterns:
        return jobs
    return [job for job in jobs if any(fnmatchcase(job.name, pattern) for pattern in patterns)]


def confirm(count: int, question: str, *, yes: bool) -> None:
    """Ask on a terminal whether to go on with many jobs; exit if the answer is no."""
    if yes or count <= ASK_ABOVE or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm(question, err=True):
        output.print_note("Nothing was done.")
        raise SystemExit(exits.INTERRUPTED)


def describe(jobs: Sequence[Job]) -> str:
    """Return how many jobs there are, and how they stand: `60 jobs: 40 succeeded, 20 queued`."""
    counts = {state: sum(job.state is state for job in jobs) for state in State}
    parts = [f"{count} {state.value}" for state, count in counts.items() if count]
    return f"{formats.plural(len(jobs), 'job')}: {', '.join(parts)}"


def is_pattern(argument: str) -> bool:
    """Tell whether an argument is a pattern: no job's name has these characters."""
    return any(character in argument for character in _MAGIC)
