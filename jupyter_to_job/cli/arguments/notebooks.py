"""Selects the notebooks that the arguments of `submit` mean: files, folders and patterns."""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from ...domain.errors import BadInput
from ...domain.names import is_job_name
from ...domain.suggestions import nearest_name
from ..options import translate_path_errors
from ..session import workspace

SUFFIX = ".ipynb"
_CHECKPOINTS = ".ipynb_checkpoints"


@dataclass(frozen=True)
class Source:
    """A notebook to submit: its workspace, its path there, and the path as the user gave it."""

    root: Path
    path: str
    argument: str


@dataclass(frozen=True)
class SelectedNotebooks:
    """The notebooks to submit, each once. It is a batch unless a single file was named.

    `skipped_results` counts the notebooks that were left out because earlier jobs made them.
    """

    sources: tuple[Source, ...]
    is_batch: bool
    skipped_results: int = 0


def select_notebooks(arguments: tuple[Path, ...]) -> SelectedNotebooks:
    """Resolve the arguments. A folder means the notebooks in it, not in the folders below it.

    Folders and patterns leave out hidden files and the results of earlier jobs; a file that is
    named is always taken. Raises BadInput for an argument without a notebook, so that nothing is
    submitted if an argument was mistyped.
    """
    sources: dict[str, Source] = {}
    skipped_results = 0
    is_batch = len(arguments) > 1
    for argument in arguments:
        with translate_path_errors("read", argument, "Look at the path and its permissions."):
            is_file = os.path.lexists(argument) and not argument.is_dir()
            files, skipped = ([argument], 0) if is_file else _search(argument)
        if is_file and argument.suffix != SUFFIX:
            raise BadInput(
                f"{argument} is no notebook: its name does not end in {SUFFIX}.",
                "Name a notebook, a folder of notebooks, or a pattern in quotes.",
            )
        is_batch = is_batch or not is_file
        skipped_results += skipped
        for file in files:
            source = _source(file)
            sources.setdefault(str(source.root / source.path), source)
    return SelectedNotebooks(tuple(sources.values()), is_batch, skipped_results)


def _search(argument: Path) -> tuple[list[Path], int]:
    """Return the notebooks in a folder or of a pattern, and how many results were left out.

    Raises BadInput if there is none, and OSError.
    """
    matches = list(_matching(argument))
    files = [file for file in matches if not is_result(file)]
    if not files:
        raise _no_notebook(argument, len(matches))
    return files, len(matches) - len(files)


def is_result(file: Path) -> bool:
    """Return whether a job made this notebook: papermill's metadata name a job's result."""
    try:
        data = file.read_bytes()
        if b'"papermill"' not in data:
            return False
        output = json.loads(data)["metadata"]["papermill"]["output_path"]
        return is_job_name(PurePath(output).stem)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False  # if it cannot be read, submitting it reports why


def _matching(argument: Path) -> Iterator[Path]:
    """Yield the notebooks in a folder, or those that match a pattern. Raises OSError."""
    pattern = str(argument)
    if argument.is_dir():
        os.scandir(argument).close()  # `glob` takes a folder that may not be read for empty
        pattern = f"{glob.escape(pattern)}/*{SUFFIX}"
    # Path.glob takes no absolute patterns, and does not leave out hidden names.
    for text in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207
        path = Path(text)
        if path.suffix == SUFFIX and _CHECKPOINTS not in path.parts and path.is_file():
            yield path


def _no_notebook(argument: Path, results: int) -> BadInput:
    if results:
        return BadInput(
            f"{argument}: all notebooks there are results of earlier jobs.",
            "Name one by its path to submit it all the same.",
        )
    if argument.is_dir():
        return BadInput(f"There is no notebook in {argument}.", "Folders below it are left out.")
    if glob.has_magic(str(argument)):
        return BadInput(f"No notebook matches {argument}.", "`**` goes into folders, too.")
    return BadInput(f"There is no {argument}.", _similar_notebook(argument) or "Check the path.")


def _similar_notebook(missing: Path) -> str:
    """Return a hint at a notebook of that folder with a similar name, "" if there is none."""
    beside: list[Path] = []
    if missing.parent.is_dir():
        with contextlib.suppress(OSError):
            beside = list(_matching(missing.parent))
    nearest = nearest_name(missing.name, [path.name for path in beside])
    return f"Did you mean {missing.with_name(nearest)}?" if nearest else ""


def _source(file: Path) -> Source:
    """Find a notebook's workspace: its own folder, if it is outside of the command line's."""
    root = workspace()
    path = Path(os.path.abspath(file))
    if path.is_relative_to(root):
        return Source(root, path.relative_to(root).as_posix(), str(file))
    return Source(path.parent, path.name, str(file))
