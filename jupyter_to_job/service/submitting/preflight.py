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
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ...domain.errors import BadInput, BadNotebook, JobsError, TooLarge, UnknownChoice
from ...domain.job import Submission
from ...domain.preflight import Parameter, PlannedInput, Preflight, Problem, SuggestedInput
from ...domain.submission_rules import validate_submission
from ...exchange.request import Environment
from ...workspace import Plan, Workspace, freeze, plan_inputs, resolve_output, suggest
from .submission import Caller, SubmissionService

PATIENCE = 30.0
"""Seconds for reading a notebook's parameters."""


@dataclass(frozen=True)
class FilesReport:
    """What was found out in the workspace; `kernel` is what the notebook names."""

    problems: tuple[Problem, ...]
    parameters: tuple[Parameter, ...] = ()
    suggested: tuple[SuggestedInput, ...] = ()
    kernel: str | None = None
    inputs: tuple[PlannedInput, ...] = ()
    ignored: int = 0
    input_cap: int | None = None

    def shown(self) -> dict[str, Any]:
        """Return all but the problems as the fields of a Preflight."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "problems"}


def look_at_files(
    workspace: Workspace, asked: Submission, input_cap: int | None, environment: Environment
) -> FilesReport:
    """Look at the notebook, the inputs and the place of the result: the workspace's side."""
    found = _look_at_notebook(workspace, asked, environment)
    plan, over = _plan(workspace, asked, input_cap)
    return replace(
        found,
        problems=(*found.problems, *over, *_target_problems(workspace, asked)),
        inputs=tuple(PlannedInput(i.path, i.size) for i in plan.files),
        ignored=plan.ignored,
        input_cap=input_cap,
    )


def _look_at_notebook(
    workspace: Workspace, asked: Submission, environment: Environment
) -> FilesReport:
    try:
        frozen = freeze(
            workspace,
            asked.notebook,
            expected_sha256=asked.expected_sha256,
            content=asked.content,
        )
    except JobsError as error:
        return FilesReport((_problem(error),))
    outline = frozen.outline
    assert outline is not None  # `freeze` just made it
    declaring = frozen.data if outline.declaring is None else outline.declaring.encode()
    parameters, problems = _parameters(declaring, asked, environment)
    named = suggest(workspace, asked.notebook, outline.code, outline.language)
    suggested = tuple(SuggestedInput(s.path, s.size, s.why) for s in named)
    return FilesReport(tuple(problems), parameters, suggested, outline.kernel)


def _plan(workspace: Workspace, asked: Submission, cap: int | None) -> tuple[Plan, list[Problem]]:
    """Return what would go along, and why it may not; what is too large is shown all the same."""
    if not asked.inputs:
        return Plan(), []
    try:
        return plan_inputs(workspace, asked.inputs, cap), []
    except TooLarge as error:
        with contextlib.suppress(TooLarge):
            return plan_inputs(workspace, asked.inputs), [_problem(error)]
        return Plan(), [_problem(error)]
    except BadInput as error:
        return Plan(), [_problem(error, "missing_input")]


def look_at_choice(
    intake: Callable[[], SubmissionService], asked: Submission, kernel: str | None, caller: Caller
) -> Iterator[Problem]:
    """Yield what keeps the backend from taking it: the gateway's side, where there is one."""
    try:
        taker = intake()
        validate_submission(asked)
        taker.choose(asked, None, caller)
    except JobsError as error:
        yield _problem(error)
        return
    try:
        taker.backend.admit({}, kernel)
    except UnknownChoice as error:
        yield _problem(error, "no_kernel")


def preflight(
    intake: Callable[[], SubmissionService], asked: Submission, caller: Caller
) -> Preflight:
    """Return the whole answer where this process reaches workspace and backend.

    `intake` makes what takes submissions; a catalog that is broken is a problem like others.
    """
    workspace = Workspace(Path(caller.workspace), [Path(root) for root in caller.roots])
    files = look_at_files(workspace, asked, caller.input_cap, caller.environment)
    chosen = tuple(look_at_choice(intake, asked, files.kernel, caller))
    return Preflight(
        problems=files.problems + chosen,
        **files.shown(),
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
    declaring: bytes, asked: Submission, environment: Environment
) -> tuple[tuple[Parameter, ...], list[Problem]]:
    """Read the notebook's parameters, as the runner does; and say which that are set it has not.

    `declaring` is a notebook with the cell that declares them.
    """
    try:
        found = _inspect(declaring, environment)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"The parameters could not be read: {error}."
        return (), [Problem("not_inspected", message, blocking=False)]
    except BadNotebook as error:
        return (), [_problem(error)]
    if found is None:  # papermill cannot read this language
        return (), []
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


def _inspect(declaring: bytes, environment: Environment) -> tuple[Parameter, ...] | None:
    """Ask `job_runner inspect`, as a process: it imports what a server has no use for."""
    with tempfile.NamedTemporaryFile(suffix=".ipynb") as file:
        file.write(declaring)
        file.flush()
        ran = subprocess.run(
            [environment.interpreter, "-m", "job_runner", "inspect", file.name],
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
    found = json.loads(ran.stdout)
    if found is None:
        return None
    return tuple(Parameter(p["name"], p["type"], p["default"], p["help"]) for p in found)
