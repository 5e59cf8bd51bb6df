"""Which notebooks the arguments of `submit` mean: files, folders, and patterns in quotes."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath

from ...domain.errors import BadInput
from ...domain.names import is_job_name
from ..session import workspace

SUFFIX = ".ipynb"
_CHECKPOINTS = ".ipynb_checkpoints"


@dataclass(frozen=True)
class Source:
    """A notebook to submit: the workspace that it belongs to, its path there, and as typed."""

    root: Path
    path: str
    typed: str


@dataclass(frozen=True)
class SelectedNotebooks:
    """All notebooks that were asked for, each once; `batch` unless it was one file by its name.

    `results` counts those that were passed over because earlier jobs made them.
    """

    sources: tuple[Source, ...]
    batch: bool
    results: int = 0


def find(arguments: tuple[Path, ...]) -> SelectedNotebooks:
    """Resolve the arguments. A folder means the notebooks in it, not in the folders below it.

    Of folders and patterns hidden files are left out, and the results of earlier jobs; a file that
    is named is taken as it is. Raises BadInput for an argument that means no notebook, so that
    nothing is submitted of a call that was mistyped.
    """
    found: dict[str, Source] = {}
    results = 0
    batch = len(arguments) > 1
    for argument in arguments:
        if os.path.lexists(argument) and not argument.is_dir():
            _check_name(argument)
            files = [argument]
        else:
            batch = True
            matches = list(_in_folder(argument) if argument.is_dir() else _matching(argument))
            files = [file for file in matches if not is_result(file)]
            results += len(matches) - len(files)
            if not files:
                raise _nothing(argument, len(matches))
        for file in files:
            source = _source(file)
            found.setdefault(str(source.root / source.path), source)
    return SelectedNotebooks(tuple(found.values()), batch, results)


def is_result(file: Path) -> bool:
    """Tell whether a job made this notebook: papermill's metadata name a job's output."""
    try:
        data = file.read_bytes()
        if b'"papermill"' not in data:
            return False
        output = json.loads(data)["metadata"]["papermill"]["output_path"]
        return is_job_name(PurePath(output).stem)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False  # whatever it is, submitting it will say so


def _in_folder(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.suffix == SUFFIX and not path.name.startswith(".") and path.is_file():
            yield path


def _matching(pattern: Path) -> Iterator[Path]:
    # Not Path.glob: it takes no absolute pattern, and hidden names as any others.
    for text in sorted(glob.glob(str(pattern), recursive=True)):  # noqa: PTH207
        path = Path(text)
        if path.suffix == SUFFIX and _CHECKPOINTS not in path.parts and path.is_file():
            yield path


def _check_name(file: Path) -> None:
    if file.suffix != SUFFIX:
        raise BadInput(
            f"{file} is no notebook: its name does not end in {SUFFIX}.",
            "Name a notebook, a folder of notebooks, or a pattern in quotes.",
        )


def _nothing(argument: Path, results: int) -> BadInput:
    if results:
        return BadInput(
            f"{argument}: all notebooks there are results of earlier jobs.",
            "Name one by its path to submit it all the same.",
        )
    if argument.is_dir():
        return BadInput(f"There is no notebook in {argument}.", "Folders below it are left out.")
    if glob.has_magic(str(argument)):
        return BadInput(f"No notebook matches {argument}.", "`**` goes into folders, too.")
    return BadInput(f"There is no {argument}.", _near(argument) or "Check the path.")


def _near(missing: Path) -> str:
    """Return which notebook of that folder may have been meant, "" if none is like it."""
    try:
        there = [path.name for path in _in_folder(missing.parent)]
    except OSError:
        return ""
    near = get_close_matches(missing.name, there, n=1)
    return f"Did you mean {missing.with_name(near[0])}?" if near else ""


def _source(file: Path) -> Source:
    """Place a notebook: one outside of the command line's workspace has its folder as its own."""
    root = workspace()
    path = Path(os.path.abspath(file))
    if path.is_relative_to(root):
        return Source(root, path.relative_to(root).as_posix(), str(file))
    return Source(path.parent, path.name, str(file))
