"""What `submit` prints beside the names: the inputs that are sent, and unknown parameters.

Looking up the parameters of a notebook takes a process. So it runs while the notebook is submitted,
and only if parameters were given. A submission never waits for it, and never fails because of it.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from ...domain.errors import JobsError
from .. import session
from ..display import output

if TYPE_CHECKING:
    from ...domain.job import Submission
    from ...domain.preflight import Preflight
    from ...service.port import Jobs
    from .notebooks import Source

PREFLIGHT_TIMEOUT = 10.0
"""Seconds after the last submission until which warnings are awaited."""
MAX_PREFLIGHTS = 2
"""Notebooks whose parameters are looked up at the same time."""


class SubmitWarnings:
    """A context manager: `check` each submission. Leaving it prints the pending warnings."""

    def __init__(self) -> None:
        self._pending: dict[str, Future[Preflight]] = {}
        self._printed_inputs: set[tuple[Path, tuple[str, ...]]] = set()
        self._pool = ThreadPoolExecutor(MAX_PREFLIGHTS)

    def __enter__(self) -> SubmitWarnings:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *details: object) -> None:
        if error_type is None:
            self._print_warnings()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def check(self, service: Jobs, source: Source, submission: Submission) -> None:
        """Print which inputs are sent, and start to look up the notebook's parameters."""
        inputs = (source.root, submission.inputs)
        if submission.inputs and inputs not in self._printed_inputs:
            self._printed_inputs.add(inputs)
            _print_inputs(*inputs)
        if submission.parameters:
            self._pending[source.argument] = self._pool.submit(service.preflight, submission)

    def _print_warnings(self) -> None:
        finished, _ = wait(self._pending.values(), PREFLIGHT_TIMEOUT)
        for argument, future in self._pending.items():
            if future not in finished or isinstance(future.exception(), JobsError | OSError):
                continue  # submitting the notebook reported the same error
            for problem in future.result().problems:
                if problem.code == "unknown_parameter":
                    output.print_note(f"Warning: {argument}: {problem.message} {problem.hint}")


def _print_inputs(root: Path, patterns: tuple[str, ...]) -> None:
    from ...workspace import Workspace, plan_inputs

    roots = [Path(path).expanduser() for path in session.settings().roots.split(":") if path]
    try:
        plan = plan_inputs(Workspace(root, roots), patterns)
    except JobsError:  # the submission of each notebook reports it
        return
    summary = plan.summary()
    output.print_note(summary[:1].upper() + summary[1:] + ".")
