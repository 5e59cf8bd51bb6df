"""What `submit` prints beside the names: the inputs that are sent, and what preflight says.

Looking up the parameters of a notebook takes a process. So it runs while the notebook is submitted,
and only if parameters were given, or a cluster has a word on it. A submission never waits for it,
and never fails because of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from ...domain.errors import JobsError
from .. import session
from ..display import output

if TYPE_CHECKING:
    from ...domain.job import Job, Submission
    from ...domain.preflight import Preflight
    from ...service.port import Jobs
    from .notebooks import Source

PREFLIGHT_TIMEOUT = 10.0
"""Seconds after the last submission until which warnings are awaited."""
MAX_SUGGESTIONS = 3
"""Files that are named of those that a notebook seems to need."""
MAX_PREFLIGHTS = 2
"""Notebooks that are looked at at the same time."""
_CODES_OF_CLUSTERS = (
    *("over_quota", "cluster_refuses", "no_node", "no_kernel"),
    *("user_unknown", "image_unpinned", "variables_dropped", "volume_left"),
)
"""What a gateway takes all the same: the job waits, or misses something."""


class SubmitWarnings:
    """A context manager: `check` each submission. Leaving it prints the pending warnings."""

    def __init__(self) -> None:
        self._pending: dict[str, Future[Preflight]] = {}
        self._jobs: dict[str, Job] = {}
        self._printed_inputs: set[tuple[Path, tuple[str, ...]]] = set()
        self._asked_clusters: set[Path] = set()
        self._pool = ThreadPoolExecutor(MAX_PREFLIGHTS)

    def __enter__(self) -> SubmitWarnings:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *details: object) -> None:
        if error_type is None:
            self._print_warnings()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def check(self, service: Jobs, source: Source, submission: Submission) -> None:
        """Print which inputs are sent, and start to look at the notebook.

        A cluster says the same of all notebooks of a batch, and is asked for the first one.
        """
        inputs = (source.root, submission.inputs)
        if submission.inputs and inputs not in self._printed_inputs:
            self._printed_inputs.add(inputs)
            _print_inputs(*inputs)
        is_new = service.pulls and source.root not in self._asked_clusters
        if is_new:
            self._asked_clusters.add(source.root)
        if submission.parameters or is_new:
            self._pending[source.argument] = self._pool.submit(service.preflight, submission)

    def record(self, source: Source, job: Job) -> None:
        """Note a job of a notebook: preflight may have seen another moment than the job."""
        self._jobs.setdefault(source.argument, job)

    def _print_warnings(self) -> None:
        finished, _ = wait(self._pending.values(), PREFLIGHT_TIMEOUT)
        printed: set[str] = set()
        for argument, future in self._pending.items():
            # Submitting the notebook reported the same error, or it is a fault of this look alone.
            if future not in finished or future.exception() is not None:
                continue
            for note in _notes(argument, future.result(), self._jobs.get(argument)):
                if note not in printed:
                    printed.add(note)
                    output.print_note(note)


def _notes(argument: str, preflight: Preflight, job: Job | None) -> Iterator[str]:
    """Yield what is worth knowing of a notebook that was submitted, as `job` if it was taken."""
    for problem in preflight.problems:
        if problem.code == "unknown_parameter":
            yield f"Warning: {argument}: {problem.message} {problem.hint}"
    if preflight.image is None:  # the run sees what is here
        return
    if job is not None:
        yield _place(job)
    for problem in preflight.problems:
        # A quota that has no room just now may be full of this very job.
        if problem.code in _CODES_OF_CLUSTERS and (
            problem.code != "over_quota" or problem.blocking
        ):
            yield f"Warning: {problem.message} {problem.hint}"
    sent = {item.path for item in preflight.inputs}
    missing = [item.path for item in preflight.suggested if item.path not in sent]
    if (job or preflight).isolated and missing:
        names = ", ".join(missing[:MAX_SUGGESTIONS])
        more = f" and {len(missing) - MAX_SUGGESTIONS} more" * (len(missing) > MAX_SUGGESTIONS)
        yield f"Warning: {argument}: it seems to need {names}{more}: send them with --input."


def _place(job: Job) -> str:
    """Return where a job works on a cluster, and what it sees of the user's files."""
    mounts_text = f" It sees as you do here: {', '.join(job.mounts)}." if job.mounts else ""
    if job.isolated:
        return f"Isolated: it works in a scratch folder, with the files that are sent.{mounts_text}"
    return f"It works in the notebook's own folder.{mounts_text}"


def _print_inputs(root: Path, patterns: tuple[str, ...]) -> None:
    from ...workspace import Workspace, plan_inputs

    roots = [Path(path).expanduser() for path in session.settings().roots.split(":") if path]
    try:
        plan = plan_inputs(Workspace(root, roots), patterns)
    except JobsError:  # the submission of each notebook reports it
        return
    summary = plan.summary()
    output.print_note(summary[:1].upper() + summary[1:] + ".")
