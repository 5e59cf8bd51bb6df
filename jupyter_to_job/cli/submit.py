"""From the options of `submit` to a Submission."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..domain.errors import BadInput
from ..domain.job import Submission
from ..domain.quantities import parse_duration
from ..wiring import Settings
from .parameters import collect


def workspace_of(notebook: Path) -> tuple[Path, str]:
    """Return the workspace that a notebook belongs to, and its path there.

    A notebook outside of the CLI's workspace has its own folder as workspace.
    """
    root = Path(Settings.load().workspace or ".").absolute()
    path = Path(os.path.abspath(notebook))
    if path.is_relative_to(root):
        return root, path.relative_to(root).as_posix()
    return path.parent, path.name


def submission(notebook: str, root: Path, options: dict[str, Any]) -> Submission:
    """Return what was asked for on the command line. Raises BadInput."""
    limit = options["max_runtime"]
    return Submission(
        notebook=notebook,
        flavor=options["flavor"],
        device=options["device"],
        parameters=collect(options["params_file"], options["typed"], options["raw"]),
        inputs=tuple(_inside(Path(i), root) for i in options["inputs"]),
        isolated=options["isolated"],
        env=dict(_variable(text) for text in options["env"]),
        max_runtime=None if limit is None else parse_duration(limit),
        output=_inside(Path(options["output"]), root) if options["output"] else None,
        name=options["name"],
        priority=options["priority"],
        idempotency_key=options["idempotency_key"],
    )


def _inside(path: Path, root: Path) -> str:
    """Return a path of the command line as a workspace path."""
    absolute = Path(os.path.abspath(path))
    if not absolute.is_relative_to(root):
        raise BadInput(f"{path} is outside of the workspace {root}.", "Copy it there.")
    return absolute.relative_to(root).as_posix()


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadInput(f"{text!r} is no NAME=VALUE.")
    return name, value
