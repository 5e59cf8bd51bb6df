"""The folder for results that a setting names, such as `results/{notebook}/`."""

from __future__ import annotations

import contextlib
import os
from pathlib import PurePosixPath

from job_runner.protocol.folders import open_folder

from ...domain.errors import BadInput
from ..paths import Workspace

NOTEBOOK = "{notebook}"
"""What stands in a template for the notebook's file name without its suffix."""


def check_template(template: str) -> None:
    """Raise BadInput for a template that names no folder inside of a workspace."""
    folder = template.replace(NOTEBOOK, "notebook")
    if "{" in folder or "}" in folder or "\0" in folder or ".." in PurePosixPath(folder).parts:
        raise BadInput(
            f"{template!r} is no folder for results.",
            "The settings of JupyterLab or JUPYTER_TO_JOB_RESULTS name it. Write it as results/ or "
            "results/{notebook}/, below the notebook's own folder, or with a slash before it below "
            "the workspace's root.",
        )


def results_folder(workspace: Workspace, notebook: str, template: str) -> str:
    """Return the folder of a notebook's results, with a slash at its end. It need not exist.

    Raises BadInput if it leads out of the workspace.
    """
    path = PurePosixPath(notebook)
    below = template.replace(NOTEBOOK, path.stem)
    folder = PurePosixPath(below.lstrip("/")) if below.startswith("/") else path.parent / below
    workspace.real(str(folder))
    return f"{folder}/"


def make_folder(workspace: Workspace, folder: str) -> None:
    """Make a folder with those above it, where they are missing. Raises BadInput.

    Links on its way are resolved first and have to stay in the workspace. Then each folder is made
    and opened below the one before, and no link is followed that was put there meanwhile.
    """
    real = workspace.real(folder)
    base = workspace.base_of(real)
    parts = real.relative_to(base).parts
    try:
        for depth, name in enumerate(parts):
            with open_folder(base, parts[:depth]) as above, contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
        with open_folder(base, parts):
            pass  # a file may have the name
    except OSError as error:
        raise BadInput(
            f"Cannot write {folder}: {error.strerror}.",
            "Choose another place for the result.",
        ) from error
