"""Builds Submissions from the options of `submit`, and changes from those of `rerun`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...domain.errors import BadInput
from ...domain.job import Asked, Changes, Job, Submission
from ...domain.quantities import parse_duration
from ...domain.submission_rules import check_group
from ...domain.sweep import group_name
from ..options import require_path, translate_path_errors
from .notebooks import SelectedNotebooks, Source
from .parameters import collect_parameters
from .sweeps import Sweep


def build_submissions(
    selected: SelectedNotebooks,
    options: dict[str, Any],
    parameters: dict[str, Any],
    sweep: Sweep | None,
) -> list[tuple[Source, Submission]]:
    """Return the submission of each notebook. Raises BadInput before any is submitted.

    `parameters` are those that all jobs have in common. What varies in a sweep is left out.
    """
    output = options["output"]
    if output is not None:
        _check_output(output, is_batch=selected.is_batch)
    group = options["group"]
    if sweep is not None and group is None:
        first_source = selected.sources[0]
        notebook = str(first_source.root / first_source.path)
        group = group_name(notebook, options["idempotency_key"], options["name"])
    check_group(group, options["group_limit"])
    choices = {kind: next(iter(options[kind]), None) for kind in ("flavor", "device")}
    if sweep is not None:  # its runs have them
        choices = dict.fromkeys(choices)
    common = {
        **_collect_fields({**options, **choices}),
        "parameters": parameters,
        "group": group,
        "group_limit": options["group_limit"],
        "isolated": options["isolated"],
        "env": dict(_split_variable(text) for text in options["env"]),
        "name": options["name"],
        "idempotency_key": options["idempotency_key"],
    }
    return [
        (
            source,
            Submission(
                notebook=source.path,
                inputs=tuple(i and _workspace_path(i, source.root) for i in options["inputs"]),
                output=_output_path(output, source.root) if output else None,
                **common,
            ),
        )
        for source in selected.sources
    ]


def _check_output(output: str, *, is_batch: bool) -> None:
    """Raise BadInput for an output that is no path, or no folder for the results of a batch."""
    require_path(output)
    if not is_batch or output.endswith("/"):
        return
    with translate_path_errors("write", output, "Name a folder that can be written to."):
        is_folder = Path(output).is_dir()
    if not is_folder:
        raise BadInput(
            f"--output {output} is no folder, and the results of a batch need one.",
            "Write a slash at its end, and it is made.",
        )


def collect_changes(options: dict[str, Any]) -> dict[str, Any]:
    """Return the flavor, device, parameters and limits that were given, as Submission fields.

    Raises BadInput.
    """
    parameters = collect_parameters(
        options["params_file"], options["parsed_parameters"], options["text_parameters"]
    )
    return {**_collect_fields(options), "parameters": parameters}


def _collect_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Return the flavor, device and limits that were given. Raises BadInput."""
    limit = options["max_runtime"]
    fields = {
        "flavor": options["flavor"],
        "device": options["device"],
        "max_runtime": None if limit is None else parse_duration(limit),
        "priority": options["priority"],
    }
    return {name: value for name, value in fields.items() if value is not None}


def submission_of(job: Job, changes: Changes) -> Submission:
    """Return the submission of a job's notebook as it is now, with the job's choices and changes.

    Raises BadInput for a parameter that is unset and that the job does not have.
    """
    from ...service.submitting.rerun import without_unset

    wishes = job.asked or Asked(isolated=job.isolated, inputs=job.inputs)
    parameters = without_unset("parameter", job.parameters, changes.unset)
    flavor = job.flavor if changes.flavor is None else changes.flavor
    device = job.device if flavor == job.flavor else None
    return Submission(
        notebook=job.notebook,
        flavor=flavor,
        device=device if changes.device is None else changes.device,
        parameters={**parameters, **changes.parameters},
        inputs=wishes.inputs,
        isolated=wishes.isolated,
        max_runtime=changes.max_runtime or wishes.max_runtime,
        output=job.asked.output if job.asked else job.output,
        name=wishes.name,
        priority=job.priority if changes.priority is None else changes.priority,
        group=job.group,
        group_limit=wishes.group_limit,
        # Only in a group it matters, and a gateway that knows no groups would refuse it.
        rerun_of=None if job.group is None else job.name,
    )


def _workspace_path(path: str, root: Path) -> str:
    """Convert a path of the command line to a workspace path."""
    absolute = Path(os.path.abspath(path))
    if not absolute.is_relative_to(root):
        raise BadInput(
            f"{path} is outside of the workspace {root}.",
            "Copy it there, or submit from a folder that holds both.",
        )
    return absolute.relative_to(root).as_posix()


def _output_path(output: str, root: Path) -> str:
    """Convert an output as `_workspace_path` does; a slash at its end stays."""
    path = _workspace_path(output, root)
    return f"{path}/" if output.endswith("/") else path


def _split_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:  # the value may be a secret: it is not repeated
        raise BadInput(f"{name!r} is no NAME=VALUE.", "Write it as -e NAME=VALUE.")
    return name, value
