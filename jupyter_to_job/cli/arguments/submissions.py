"""From the options of `submit` to Submissions, and of `rerun` to what changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...domain.errors import BadInput
from ...domain.job import Submission
from ...domain.quantities import parse_duration
from .notebooks import SelectedNotebooks, Source
from .parameters import collect


def submissions(
    asked: SelectedNotebooks, options: dict[str, Any]
) -> list[tuple[Source, Submission]]:
    """Return what was asked for, for each notebook. Raises BadInput before any is submitted."""
    output = options["output"]
    if output and not Path(output).is_dir():
        if asked.batch:
            raise BadInput(
                f"--output {output} is no folder, and the results of a batch need one.",
                "Make the folder first.",
            )
        if output.endswith("/"):
            raise BadInput(f"There is no folder {output} for --output.", "Make the folder first.")
    common = {
        **changes(options),
        "isolated": options["isolated"],
        "env": dict(_variable(text) for text in options["env"]),
        "name": options["name"],
        "idempotency_key": options["idempotency_key"],
    }
    return [
        (
            source,
            Submission(
                notebook=source.path,
                inputs=tuple(_inside(i, source.root) for i in options["inputs"]),
                output=_inside(output, source.root) if output else None,
                **common,
            ),
        )
        for source in asked.sources
    ]


def changes(options: dict[str, Any]) -> dict[str, Any]:
    """Return what flavor, device, parameters and limits were given, as fields of a Submission.

    Raises BadInput.
    """
    limit = options["max_runtime"]
    given = {
        "flavor": options["flavor"],
        "device": options["device"],
        "parameters": collect(options["params_file"], options["typed"], options["raw"]) or None,
        "max_runtime": None if limit is None else parse_duration(limit),
        "priority": options["priority"],
    }
    return {name: value for name, value in given.items() if value is not None}


def _inside(path: str, root: Path) -> str:
    """Return a path of the command line as a workspace path."""
    absolute = Path(os.path.abspath(path))
    if not absolute.is_relative_to(root):
        raise BadInput(
            f"{path} is outside of the workspace {root}.",
            "Copy it there, or submit from a folder that holds both.",
        )
    return absolute.relative_to(root).as_posix()


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadInput(
            f"{text.partition('=')[0]!r} is no NAME=VALUE.", "Write it as -e NAME=VALUE."
        )
    return name, value
