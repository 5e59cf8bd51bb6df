"""Freezes a notebook and its inputs: what is on disk at this moment, byte for byte."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...domain.errors import BadInput, BadNotebook, Stale, TooLarge
from ...exchange import InputFile
from ..paths import SpecialFile, Workspace
from ..publishing.temp_files import CHUNK
from .inputs import Input, plan_inputs
from .notebook import summarize_notebook
from .notebook_summary import NotebookSummary

MAX_NOTEBOOK = 512 << 20
_TRIES = 3
_PAUSE = 0.2
"""Seconds that a save which was caught in the middle is given."""
_CLOCK_STEP = 0.02
"""Seconds, and some more: a hundred ticks a second is the slowest kernel."""
_FICLONE = 0x40049409
"""Linux: let two files share their blocks until one is written to (btrfs, XFS)."""


@dataclass(frozen=True)
class Frozen:
    """The snapshot's bytes, its kernel's name (None: it names none), and what goes with it.

    `outline` is there where this process froze it.
    """

    notebook: str
    source: Path
    data: bytes
    sha256: str
    kernel: str | None
    inputs: tuple[Input, ...] = ()
    outline: NotebookSummary | None = None


def freeze(
    workspace: Workspace,
    notebook: str,
    inputs: Sequence[str] = (),
    expected_sha256: str | None = None,
    input_cap: int | None = None,
    content: bytes | None = None,
) -> Frozen:
    """Read the notebook at workspace path `notebook`, and find the inputs.

    `content` is the document that somebody has open there: it is taken instead of what is on disk.
    The inputs themselves are read by `freeze_input`, when there is a place for them. Raises
    BadNotebook if the notebook is missing or none, Stale if its digest is not the expected one,
    and what `plan_inputs` raises.
    """
    if notebook.endswith("/"):
        raise BadNotebook(f"{notebook} is no place of a notebook.", "Leave out the last slash.")
    if content is None:
        data, outline = _read_whole_notebook(workspace, notebook)
    else:
        data, outline = content, _check_content(workspace, notebook, content)
    digest = hashlib.sha256(data).hexdigest()
    if expected_sha256 is not None and digest != expected_sha256:
        raise Stale(f"{notebook} changed on disk after it was saved.", "Save it and submit again.")
    files = plan_inputs(workspace, inputs, input_cap).files if inputs else ()
    source = workspace.root / notebook
    return Frozen(notebook, source, data, digest, outline.kernel, files, outline)


def freeze_input(
    item: Input, target: Path, step: Callable[[int], None] = lambda _: None
) -> InputFile:
    """Make `target` a private copy of an input, as it was at one moment; return its record.

    It shares its blocks with the source where the file system can. Time and executable bit are
    kept. `step` is told the bytes of each piece, and may end it by raising. Raises BadInput if the
    source cannot be read, Stale if it never stands still.
    """
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        try:
            source = item.open()
        except OSError as error:
            raise _unreadable(item, error) from error
        with source:
            before = _at_rest(source)
            if before is None:
                continue
            mode = 0o600 | (before.st_mode & stat.S_IXUSR)
            copy = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
            with os.fdopen(copy, "w+b") as file:
                digest = _copy(item, source, file, step)
                size = file.tell()
                file.flush()
                os.fsync(file.fileno())  # a job whose inputs a crash emptied would run all the same
                os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
            if digest is not None and _stamp(before) == _stamp(os.fstat(source.fileno())):
                return InputFile(item.path, digest, size)
    raise Stale(f"The input {item.path} is being written to.", "Submit again when it is complete.")


def _check_content(workspace: Workspace, notebook: str, content: bytes) -> NotebookSummary:
    """Return the outline of an open document; it must belong where it says it does."""
    place = workspace.real(notebook)
    if place.is_dir() or not place.parent.is_dir():
        raise BadNotebook(f"{notebook} is no place of a notebook.", "Save it in a folder first.")
    _check_size(notebook, len(content))
    return summarize_notebook(content, notebook)


def _read_whole_notebook(workspace: Workspace, notebook: str) -> tuple[bytes, NotebookSummary]:
    """Return the notebook's bytes and outline; not a save that is half done."""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        data, stable = _read_notebook(workspace, notebook)
        if stable:
            try:
                return data, summarize_notebook(data, notebook)
            except BadNotebook:
                # Not everybody saves atomically: a reader may see an emptied or half written file.
                time.sleep(_PAUSE)
                if _read_notebook(workspace, notebook)[0] == data:
                    raise
    raise Stale(f"{notebook} is being written to.", "Submit again when it is saved.")


def _read_notebook(workspace: Workspace, notebook: str) -> tuple[bytes, bool]:
    """Return the bytes, and whether nobody wrote to the file meanwhile."""
    try:
        with workspace.open(notebook) as file:
            before = _at_rest(file)
            if before is None:
                return b"", False
            _check_size(notebook, before.st_size)
            data = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
            return data, len(data) == before.st_size and _stamp(before) == _stamp(after)
    except SpecialFile as error:
        raise BadNotebook(error.message, "Name a notebook.") from error
    except OSError as error:
        raise BadNotebook(
            f"Cannot read {notebook}: {error.strerror}.", "Check the path and save the notebook."
        ) from error


def _check_size(notebook: str, size: int) -> None:
    if size > MAX_NOTEBOOK:
        raise TooLarge(f"{notebook} is over 512 MiB.", "Clear its outputs, submit again.")


def _copy(
    item: Input, source: BinaryIO, target: BinaryIO, step: Callable[[int], None]
) -> str | None:
    """Copy a file; return the digest, or None if it grew meanwhile."""
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:  # not this file system, or not across two of them
        size = os.fstat(source.fileno()).st_size
        digest = hashlib.sha256()
        for chunk in _chunks(item, source):
            target.write(chunk)
            digest.update(chunk)
            step(len(chunk))
            if target.tell() > size:
                return None
        return digest.hexdigest()
    cloned = hashlib.sha256()
    for chunk in _chunks(item, target):
        cloned.update(chunk)
        step(len(chunk))
    return cloned.hexdigest()


def _chunks(item: Input, file: BinaryIO) -> Iterator[bytes]:
    try:
        while chunk := file.read(CHUNK):
            yield chunk
    except OSError as error:
        raise _unreadable(item, error) from error


def _unreadable(item: Input, error: OSError) -> BadInput:
    return BadInput(f"Cannot read the input {item.path}: {error.strerror}.")


def _at_rest(file: BinaryIO) -> os.stat_result | None:
    """Return a file's status, or None if it was written to just now.

    The clock of a file system goes in steps: a write in the same step would not show afterwards.
    """
    for _ in range(2):
        status = os.fstat(file.fileno())
        if abs(time.time() - status.st_mtime) > _CLOCK_STEP:
            return status
        time.sleep(_CLOCK_STEP)
    return None


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
