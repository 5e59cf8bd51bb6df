"""Before sending: what a submission would meet, without recording anything.

Codes are stable: `bad_notebook`, `stale`, `unknown_choice`, `refused`, `never_fits`, `no_kernel`,
`missing_input`, `too_large`, `bad_input` are blocking, for `submit` refuses them; `not_writable`,
`unknown_parameter` and `not_inspected` are not.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..domain.asked import check
from ..domain.errors import BadInput, BadNotebook, JobsError, TooLarge, UnknownChoice
from ..domain.job import Submission
from ..domain.preflight import Parameter, PlannedInput, Preflight, Problem
from ..exchange.request import Environment
from ..workspace import Workspace, freeze, plan_inputs, resolve_output
from .intake import Caller, Intake

PATIENCE = 30.0
"""Seconds for reading a notebook's parameters."""


@dataclass(frozen=True)
class Files:
    """What was found out in the workspace; `kernel` is what the notebook names."""

    problems: tuple[Problem, ...]
    parameters: tuple[Parameter, ...]
    inputs: tuple[PlannedInput, ...]
    kernel: str | None = None


def look_at_files(
    workspace: Workspace, asked: Submission, input_cap: int | None, environment: Environment
) -> Files:
    """Look at the notebook, the inputs and the place of the result: the workspace's side."""
    problems: list[Problem] = []
    kernel: str | None = None
    inputs: tuple[PlannedInput, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    try:
        frozen = freeze(
            workspace,
            asked.notebook,
            expected_sha256=asked.expected_sha256,
            content=asked.content,
        )
        kernel = frozen.kernel
    except JobsError as error:
        problems.append(_problem(error))
    else:
        parameters, unknown = _parameters(workspace, asked, environment)
        problems += unknown
    try:
        planned = plan_inputs(workspace, asked.inputs, input_cap).files if asked.inputs else ()
        inputs = tuple(PlannedInput(i.path, i.size) for i in planned)
    except TooLarge as error:
        problems.append(_problem(error))
    except BadInput as error:
        problems.append(_problem(error, "missing_input"))
    problems += _target_problems(workspace, asked)
    return Files(tuple(problems), parameters, inputs, kernel)


def look_at_choice(
    intake: Callable[[], Intake], asked: Submission, kernel: str | None, caller: Caller
) -> Iterator[Problem]:
    """Yield what keeps the backend from taking it: the gateway's side, where there is one."""
    try:
        taker = intake()
        check(asked)
        taker.choose(asked, None, caller)
    except JobsError as error:
        yield _problem(error)
        return
    try:
        taker.backend.admit({}, kernel)
    except UnknownChoice as error:
        yield _problem(error, "no_kernel")


def preflight(intake: Callable[[], Intake], asked: Submission, caller: Caller) -> Preflight:
    """Return the whole answer where this process reaches workspace and backend.

    `intake` makes what takes submissions; a catalog that is broken is a problem like others.
    """
    workspace = Workspace(Path(caller.workspace), [Path(root) for root in caller.roots])
    files = look_at_files(workspace, asked, caller.input_cap, caller.environment)
    chosen = tuple(look_at_choice(intake, asked, files.kernel, caller))
    return Preflight(
        problems=files.problems + chosen,
        parameters=files.parameters,
        inputs=files.inputs,
        isolated=asked.isolated or not caller.sees_workspace,
    )


def _problem(error: JobsError, code: str | None = None) -> Problem:
    return Problem(code or error.code, error.message, error.hint)


def _target_problems(workspace: Workspace, asked: Submission) -> Iterator[Problem]:
    """Yield why the result could not be published: it would be held."""
    if asked.output is not None:
        try:
            resolve_output(workspace, asked.output)
        except JobsError as error:
            yield _problem(error)
            return
    try:
        target = workspace.real(asked.output or asked.notebook)
    except BadInput:
        return  # said already
    folder = target if asked.output is not None and target.is_dir() else target.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        shown = PurePosixPath(asked.output or asked.notebook).parent
        state = "cannot be written to" if folder.is_dir() else "is not there"
        yield Problem(
            "not_writable",
            f"The folder {shown} {state}: the result would be held.",
            "Mend it before the job ends, or choose another with --output.",
            blocking=False,
        )


def _parameters(
    workspace: Workspace, asked: Submission, environment: Environment
) -> tuple[tuple[Parameter, ...], list[Problem]]:
    """Read the notebook's parameters, as the runner does; and say which that are set it has not."""
    try:
        with _on_disk(workspace, asked) as path:
            found = _inspect(path, environment)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"The parameters could not be read: {error}."
        return (), [Problem("not_inspected", message, blocking=False)]
    except BadNotebook as error:
        return (), [_problem(error)]
    known = {parameter.name for parameter in found}
    return found, [
        Problem(
            "unknown_parameter",
            f"{name} is no parameter of this notebook.",
            "It is set all the same. Tag the cell with the defaults `parameters`.",
            blocking=False,
        )
        for name in asked.parameters
        if name not in known
    ]


@contextlib.contextmanager
def _on_disk(workspace: Workspace, asked: Submission) -> Iterator[str]:
    """Hand out the path of a file with what would be frozen."""
    if asked.content is None:
        yield str(workspace.real(asked.notebook))
        return
    with tempfile.NamedTemporaryFile(suffix=".ipynb") as file:
        file.write(asked.content)
        file.flush()
        yield file.name


def _inspect(path: str, environment: Environment) -> tuple[Parameter, ...]:
    """Ask `job_runner inspect`, as a process: it imports much that a server has no use for."""
    ran = subprocess.run(
        [environment.interpreter, "-m", "job_runner", "inspect", path],
        env=environment.variables,
        cwd="/",  # `-m` looks for modules here first, and notebooks have files of any name
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if ran.returncode != 0:
        said = (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
        message = said.removeprefix("job_runner: ").rstrip(".")
        if ran.returncode == 2:
            raise BadNotebook(f"{message}.")
        raise ValueError(message)
    return tuple(
        Parameter(p["name"], p["type"], p["default"], p["help"]) for p in json.loads(ran.stdout)
    )
