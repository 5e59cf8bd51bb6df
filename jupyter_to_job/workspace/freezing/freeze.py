"""Freezes a notebook and its inputs: copies the files as they are on disk at one moment."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...domain.errors import BadInput, BadNotebook, Damaged, Stale, TooLarge
from ...exchange import InputFile
from ..paths import SpecialFile, Workspace, read_chunks
from .inputs import Input, plan_inputs
from .notebook_summary import NotebookSummary, summarize_notebook

MAX_NOTEBOOK = 512 << 20
MAX_SENT_NOTEBOOK = 100 << 20
"""Bytes of a notebook that a gateway takes: it reads and checks it in memory."""
_TRIES = 3
_RETRY_INTERVAL = 0.2
"""Seconds to wait for a save that is incomplete."""
_CLOCK_STEP = 0.02
"""Seconds; the clock of a file system has at least a hundred steps a second."""
_FICLONE = 0x40049409
"""Linux: let two files share their blocks until one is written to (btrfs, XFS)."""


@dataclass(frozen=True)
class Frozen:
    """The snapshot's bytes, its kernel's name (None: it names none), and its input files.

    `summary` is None where another process froze the notebook.
    """

    notebook: str
    source: Path
    data: bytes
    sha256: str
    kernel: str | None
    inputs: tuple[Input, ...] = ()
    summary: NotebookSummary | None = None


def freeze(
    workspace: Workspace,
    notebook: str,
    inputs: Sequence[str] = (),
    expected_sha256: str | None = None,
    input_cap: int | None = None,
    content: bytes | None = None,
    max_size: int = MAX_NOTEBOOK,
) -> Frozen:
    """Read the notebook at workspace path `notebook`, and find the inputs.

    `content` is the document that an editor has open there: it replaces the file on disk.
    `freeze_input` reads the inputs later. Raises BadNotebook if the notebook is missing or invalid,
    TooLarge if it has more than `max_size` bytes, Stale if its digest is not the expected one, and
    the errors of `plan_inputs`.
    """
    if notebook.endswith("/"):
        raise BadNotebook(f"{notebook} is no place of a notebook.", "Leave out the last slash.")
    if content is None:
        data, summary = _read_complete_notebook(workspace, notebook, max_size)
    else:
        data, summary = content, _check_content(workspace, notebook, content, max_size)
    digest = hashlib.sha256(data).hexdigest()
    if expected_sha256 is not None and digest != expected_sha256:
        raise Stale(f"{notebook} changed on disk after it was saved.", "Save it and submit again.")
    files = plan_inputs(workspace, inputs, input_cap).files if inputs else ()
    source = workspace.root / notebook
    return Frozen(notebook, source, data, digest, summary.kernel, files, summary)


def freeze_input(
    item: Input, target: Path, step: Callable[[int], None] = lambda _: None
) -> InputFile:
    """Make `target` a private copy of an input as it was at one moment; return its record.

    The copy shares its blocks with the source where the file system can. Time and executable bit
    are kept. A file that the exchange has already gets a second name and is not copied. `step` is
    called with the size of each piece, and may raise to cancel. Raises BadInput if the source
    cannot be read, Stale if it is written to all the time, Damaged if it has another digest than it
    must have.
    """
    if item.stored is not None and item.sha256 is not None:
        with contextlib.suppress(OSError):  # no links here, or too many of that file
            os.link(item.stored, target)
            step(item.size)
            return InputFile(item.path, item.sha256, item.size)
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_RETRY_INTERVAL)
        try:
            source = item.open()
        except OSError as error:
            raise _unreadable(item, error) from error
        with source:
            status = _settled_status(source)
            if status is None:
                continue
            mode = 0o600 | (status.st_mode & stat.S_IXUSR)
            copy = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
            with os.fdopen(copy, "w+b") as file:
                digest = _copy(item, source, file, step)
                size = file.tell()
                file.flush()
                os.fsync(file.fileno())  # a job would run with inputs that a crash emptied
                os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
            if digest is not None and _stamp(status) == _stamp(os.fstat(source.fileno())):
                if item.sha256 not in (None, digest):
                    message = f"The input {item.path} is not what was submitted."
                    raise Damaged(message, "Submit the notebook.")
                return InputFile(item.path, digest, size)
    raise Stale(f"The input {item.path} is being written to.", "Submit again when it is complete.")


def _check_content(
    workspace: Workspace, notebook: str, content: bytes, max_size: int
) -> NotebookSummary:
    """Return the summary of an open document. Its folder must exist."""
    place = workspace.real(notebook)
    if place.is_dir() or not place.parent.is_dir():
        raise BadNotebook(f"{notebook} is no place of a notebook.", "Save it in a folder first.")
    _check_size(notebook, len(content), max_size)
    return summarize_notebook(content, notebook)


def _read_complete_notebook(
    workspace: Workspace, notebook: str, max_size: int
) -> tuple[bytes, NotebookSummary]:
    """Return the notebook's bytes and summary; wait for a save that is incomplete."""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_RETRY_INTERVAL)
        data, stable = _read_notebook(workspace, notebook, max_size)
        if stable:
            try:
                return data, summarize_notebook(data, notebook)
            except BadNotebook:
                # Some editors do not save atomically: a reader may see an incomplete file.
                time.sleep(_RETRY_INTERVAL)
                if _read_notebook(workspace, notebook, max_size) == (data, True):
                    raise
    raise Stale(f"{notebook} is being written to.", "Submit again when it is saved.")


def _read_notebook(workspace: Workspace, notebook: str, max_size: int) -> tuple[bytes, bool]:
    """Return the bytes, and whether the file was not written to meanwhile."""
    try:
        with workspace.open(notebook) as file:
            status = _settled_status(file)
            if status is None:
                return b"", False
            _check_size(notebook, status.st_size, max_size)
            data = file.read(status.st_size + 1)
            is_stable = _stamp(status) == _stamp(os.fstat(file.fileno()))
            return data, is_stable and len(data) == status.st_size
    except SpecialFile as error:
        raise BadNotebook(error.message, "Name a notebook.") from error
    except OSError as error:
        raise BadNotebook(
            f"Cannot read {notebook}: {error.strerror}.", "Check the path and save the notebook."
        ) from error


def _check_size(notebook: str, size: int, max_size: int) -> None:
    if size > max_size:
        raise TooLarge(
            f"{notebook} is over {max_size >> 20} MiB.", "Clear its outputs, submit again."
        )


def _copy(
    item: Input, source: BinaryIO, target: BinaryIO, step: Callable[[int], None]
) -> str | None:
    """Copy a file; return the digest, or None if it grew meanwhile."""
    size = os.fstat(source.fileno()).st_size
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        is_clone = True
    except OSError:  # this file system cannot, or source and target are on two
        is_clone = False
    digest = hashlib.sha256()
    for chunk in _chunks(item, target if is_clone else source):
        if not is_clone:
            target.write(chunk)
        digest.update(chunk)
        step(len(chunk))
        if target.tell() > size:
            return None
    return digest.hexdigest()


def _chunks(item: Input, file: BinaryIO) -> Iterator[bytes]:
    try:
        yield from read_chunks(file)
    except OSError as error:
        raise _unreadable(item, error) from error


def _unreadable(item: Input, error: OSError) -> BadInput:
    return BadInput(f"Cannot read the input {item.path}: {error.strerror}.")


def _settled_status(file: BinaryIO) -> os.stat_result | None:
    """Return a file's status, or None if it was written to just now.

    The clock of a file system goes in steps: a second write within one step leaves no trace.
    """
    for _ in range(2):
        status = os.fstat(file.fileno())
        if abs(time.time() - status.st_mtime) > _CLOCK_STEP:
            return status
        time.sleep(_CLOCK_STEP)
    return None


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
