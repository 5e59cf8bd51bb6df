"""Checks a submission before it is sent, without recording anything.

Codes are stable: `bad_notebook`, `stale`, `unknown_choice`, `refused`, `never_fits`, `no_kernel`,
`missing_input`, `too_large`, `bad_input`, `bad_catalog` and `unavailable` block, since `submit`
refuses them, and so does `not_writable` where a folder for the result cannot be made. Otherwise
that does not block, nor do `unknown_parameter`, `not_inspected`, and a `no_kernel` that only
earlier jobs tell of. A cluster's own codes are in `controller`: `preflight.cluster_checks`,
`callers.dev_pod_problems` and `jobs`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ...domain.errors import BadInput, BadNotebook, JobsError, TooLarge, UnknownChoice
from ...domain.job import Submission
from ...domain.preflight import JobImage, Parameter, PlannedInput, Preflight, Problem
from ...domain.submission_rules import validate_submission
from ...domain.suggestions import nearest_name
from ...domain.wait import JobWait
from ...exchange import Request
from ...exchange.request import Environment
from ...workspace import Plan, Workspace, freeze, plan_inputs, resolve_output, suggest
from .parameters import inspect_parameters
from .plan import plan_of
from .submission import DEFAULT_KERNEL, Caller, SubmissionService
from .utf8 import require_utf8


def inspect_files(submission: Submission, caller: Caller) -> Preflight:
    """Check the notebook, the inputs and the result's folder: the side of the workspace."""
    workspace = caller.open_workspace()
    report = _inspect_notebook(workspace, submission, caller)
    plan, input_problems = _plan(workspace, submission, caller.input_cap)
    output_problems = tuple(_output_problems(workspace, submission, caller))
    problems = (*report.problems, *input_problems, *output_problems)
    return replace(
        report,
        problems=problems,
        inputs=tuple(PlannedInput(i.path, i.size) for i in plan.files),
        ignored=plan.ignored,
        input_cap=caller.input_cap,
        results=_usual_folder(submission, caller),
    )


def _usual_folder(submission: Submission, caller: Caller) -> str | None:
    """Return where the result goes if no other place is asked for."""
    with contextlib.suppress(BadInput):  # told where it matters
        return caller.with_results(replace(submission, output=None)).results
    return None


def _inspect_notebook(workspace: Workspace, submission: Submission, caller: Caller) -> Preflight:
    try:
        frozen = freeze(
            workspace,
            submission.notebook,
            expected_sha256=submission.expected_sha256,
            content=submission.content,
            max_size=caller.max_notebook,
        )
    except JobsError as error:
        return Preflight((problem_of(error),))
    summary = frozen.summary
    assert summary is not None  # `freeze` just made it
    source = (
        frozen.data if summary.parameters_notebook is None else summary.parameters_notebook.encode()
    )
    parameters, problems = _parameters(source, submission, caller.environment)
    suggested = suggest(workspace, submission.notebook, summary.code, summary.language)
    return Preflight(tuple(problems), parameters, suggested=suggested, kernel=summary.kernel)


def _plan(
    workspace: Workspace, submission: Submission, cap: int | None
) -> tuple[Plan, list[Problem]]:
    """Return the inputs that would be sent, even if they are too large, and their problems."""
    if not submission.inputs:
        return Plan(), []
    try:
        return plan_inputs(workspace, submission.inputs, cap), []
    except TooLarge as error:
        with contextlib.suppress(TooLarge):
            return plan_inputs(workspace, submission.inputs), [problem_of(error)]
        return Plan(), [problem_of(error)]
    except BadInput as error:
        return Plan(), [problem_of(error, "missing_input")]


def check_choice(
    service: SubmissionService, submission: Submission, kernel: str | None, caller: Caller
) -> Iterator[Problem]:
    """Yield why the backend would not take it: the gateway's side, where there is one."""
    try:
        validate_submission(submission)
        service.choose(submission, caller)
    except JobsError as error:
        yield problem_of(error)
        return
    yield from _missing_kernel(kernel, caller)


def _check_kernel(image: JobImage, kernel: str | None, caller: Caller) -> Iterator[Problem]:
    """Yield why a job's image has no such kernel.

    If it is the caller's own image, what is not here is not there. Otherwise, and for kernels that
    a volume has, earlier runs tell of it.
    """
    name = kernel or DEFAULT_KERNEL
    problems = tuple(_missing_kernel(kernel, caller)) if image.is_own else ()
    yield from problems
    if not problems and name in image.missing_kernels:
        kernels = f" It has: {', '.join(image.kernels)}." if image.kernels else ""
        yield Problem(
            "no_kernel",
            f"An earlier job did not find the kernel {name!r} in the image {image.name}.{kernels}",
            "Choose another kernel in the notebook, or a flavor with another image.",
            blocking=False,  # the image may be another one by now
        )


def _missing_kernel(kernel: str | None, caller: Caller) -> Iterator[Problem]:
    """Yield why this environment has no such kernel."""
    try:
        caller.kernel_spec(kernel)
    except UnknownChoice as error:
        yield problem_of(error, "no_kernel")


def merge_reports(files: Preflight, remote: Preflight, caller: Caller) -> Preflight:
    """Return what the workspace's side, `files`, and a gateway say together."""
    problems = files.problems + remote.problems
    if remote.image is not None:
        problems += tuple(_check_kernel(remote.image, files.kernel, caller))
    try:
        require_utf8({"inputs": [item.path for item in files.inputs]})
    except BadInput as error:
        problems += (problem_of(error),)
    return replace(
        files,
        problems=problems,
        isolated=remote.isolated,
        mounts=remote.mounts,
        image=remote.image,
        plan=remote.plan,
        wait=remote.wait,
    )


def preflight(
    service: SubmissionService,
    submission: Submission,
    caller: Caller,
    wait_of: Callable[[Request], JobWait],
) -> Preflight:
    """Return all that is known where this process reaches workspace and backend.

    `wait_of` returns what a request would wait for.
    """
    report = inspect_files(submission, caller)
    problems = tuple(check_choice(service, submission, report.kernel, caller))
    with contextlib.suppress(JobsError):  # told above
        trial = service.trial(submission, caller)
        report = replace(report, plan=plan_of(trial, caller.origin), wait=wait_of(trial))
    return replace(
        report,
        problems=report.problems + problems,
        isolated=submission.isolated or not caller.sees_workspace,
    )


def problem_of(error: JobsError, code: str | None = None) -> Problem:
    """Return the problem that an error of `submit` is."""
    return Problem(code or error.code, error.message, error.hint)


def _output_problems(
    workspace: Workspace, submission: Submission, caller: Caller
) -> Iterator[Problem]:
    """Yield why the result could not be published: it would be held."""
    try:
        submission = caller.with_results(submission)
        output = submission.output or submission.results
        output = None if output is None else resolve_output(workspace, output)
    except JobsError as error:
        yield problem_of(error)
        return
    path = PurePosixPath(output or submission.notebook)
    parent = path if output is not None and output.endswith("/") else path.parent
    try:
        folder = workspace.real(str(parent))
    except BadInput:
        return  # reading the notebook has reported it
    if parent is path and not folder.is_dir():
        yield from _new_folder_problems(folder, parent)
    elif not os.access(folder, os.W_OK | os.X_OK):
        state = "cannot be written to" if folder.is_dir() else "is not there"
        yield Problem(
            "not_writable",
            f"The folder {parent} {state}: the result would be held.",
            "Mend it before the job ends, or choose another place for the result.",
            blocking=False,
        )


def _new_folder_problems(folder: Path, name: PurePosixPath) -> Iterator[Problem]:
    """Yield why a folder cannot be made at submission, with those above it."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(
            "not_writable",
            f"The folder {name} for the result cannot be made.",
            "Choose another place for the result.",
        )


def _parameters(
    source: bytes, submission: Submission, environment: Environment
) -> tuple[tuple[Parameter, ...], list[Problem]]:
    """Read the notebook's parameters, as the runner does, and check those that are set.

    `source` is a notebook with the cell that declares them.
    """
    try:
        parameters = _inspect(source, environment)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"The parameters could not be read: {error}."
        return (), [Problem("not_inspected", message, blocking=False)]
    except BadNotebook as error:
        return (), [problem_of(error)]
    if parameters is None:  # papermill cannot read this language
        return (), []
    declared = {parameter.name for parameter in parameters}
    return parameters, [
        Problem(
            "unknown_parameter",
            f"{name} is no parameter of this notebook.",
            f"Did you mean {nearest!r}?"
            if (nearest := nearest_name(name, declared))
            else "It is set all the same. Tag the cell with the defaults `parameters`.",
            blocking=False,
        )
        for name in submission.parameters
        if name not in declared
    ]


def _inspect(source: bytes, environment: Environment) -> tuple[Parameter, ...] | None:
    with tempfile.NamedTemporaryFile(suffix=".ipynb") as file:
        file.write(source)
        file.flush()
        return inspect_parameters(Path(file.name), environment)
