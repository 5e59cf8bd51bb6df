"""What `submit` says beside the names: which inputs go along, and parameters that are not known.

A notebook's parameters are looked up while it is submitted, and only where some were given: it
takes a process, and a submission must not wait for it. It never blocks one either.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ...domain.errors import JobsError
from ...domain.job import Submission
from .. import session
from ..display import output

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from ...domain.preflight import Preflight
    from ...service.port import Jobs
    from .notebooks import Source

PATIENCE = 10.0
"""Seconds after the last submission within which a warning still comes."""
WORKERS = 2


class SubmitWarnings:
    """A context manager: `look` at each submission; warnings come until it is left."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[Submission, Future[Preflight]]] = {}
        self._told: set[tuple[Path, tuple[str, ...]]] = set()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> SubmitWarnings:
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        if self._pool is None:
            return
        if kind is None:
            self._warn()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def look(self, service: Jobs, source: Source, submission: Submission) -> None:
        """Say which inputs go along, and begin to look up the notebook's parameters."""
        inputs = (source.root, submission.inputs)
        if submission.inputs and inputs not in self._told:
            self._told.add(inputs)
            _tell_inputs(*inputs)
        if submission.parameters:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(WORKERS)
            looking = self._pool.submit(service.preflight, submission)
            self._pending[source.typed] = (submission, looking)

    def _warn(self) -> None:
        from concurrent.futures import wait

        done, _ = wait([f for _, f in self._pending.values()], PATIENCE)
        for typed, (submission, looking) in self._pending.items():
            if looking not in done or isinstance(looking.exception(), JobsError | OSError):
                continue  # what is wrong with the notebook its submission has said
            seen = looking.result()
            if all(problem.code != "unknown_parameter" for problem in seen.problems):
                continue
            known = [parameter.name for parameter in seen.parameters]
            for line in _unknown(typed, submission.parameters, known):
                output.note(line)


def _tell_inputs(root: Path, patterns: tuple[str, ...]) -> None:
    from ...workspace import Workspace, plan_inputs

    roots = [Path(path).expanduser() for path in session.settings().roots.split(":") if path]
    try:
        plan = plan_inputs(Workspace(root, roots), patterns)
    except JobsError:  # the submission itself will say it, for each notebook
        return
    summary = plan.summary()
    output.note(summary[:1].upper() + summary[1:] + ".")


def _unknown(notebook: str, given: Iterable[str], known: list[str]) -> list[str]:
    """Return warnings about parameters that the notebook does not name."""
    unknown = [name for name in given if name not in known]
    if not unknown:
        return []
    if not known:
        return [f"Warning: {notebook} names no parameters; {', '.join(unknown)} goes in on top."]
    lines = []
    for name in unknown:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}."
        lines.append(f"Warning: {notebook} has no parameter {name!r}: {hint}")
    return lines
