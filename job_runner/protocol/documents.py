"""Small JSON documents: written completely or not at all, with mode 0600, and read with care."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

VERSION = 1
_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.ENODEV)
"""Errors of opening a link, a socket, or a device that is not there."""
MAX_BYTES = 256 << 20
"""Bytes of a document at most: parameters come in requests of at most half of that."""
MAX_SENT_BYTES = 4 << 20
"""Bytes of a document that a gateway takes; one of ten thousand files has about two million."""


class DocumentError(ValueError):
    """A document exists and is not readable JSON of a version that we know."""


class NewerVersion(DocumentError):
    """A document is of a newer version than this code."""


def read_document(path: Path) -> dict[str, Any] | None:
    """Return the document at `path`, or None if it is not there. Raises DocumentError, OSError."""
    try:
        with open_regular(path) as file:
            # `read(n)` takes the memory for n bytes, however few there are.
            size = os.fstat(file.fileno()).st_size
            data = file.read(min(size, MAX_BYTES) + 1)
        if len(data) > MAX_BYTES:
            raise DocumentError(f"{path.name}: over {MAX_BYTES} bytes")
        document = json.loads(data, parse_constant=_refuse)
    except FileNotFoundError:
        return None
    except DocumentError:
        raise
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path.name}: {error}") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{path.name}: not an object")
    version = document.get("v")
    if version != VERSION:
        is_newer = isinstance(version, int) and version > VERSION
        fault = NewerVersion if is_newer else DocumentError
        raise fault(f"{path.name}: version {version!r}, this reads {VERSION}")
    return document


def open_regular(path: Path, folder: int | None = None) -> BinaryIO:
    """Open a regular file for reading; never wait for a pipe, and follow no link as last step.

    A relative path begins at the open `folder`. Raises DocumentError for anything else than a
    regular file, and OSError.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, dir_fd=folder)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        raise DocumentError(f"{path.name}: not a file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DocumentError(f"{path.name}: not a file")
    return os.fdopen(descriptor, "rb")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write or replace the document at `path`, atomically."""
    write_bytes(path, encode(document))


def write_document_once(path: Path, document: dict[str, Any]) -> bool:
    """Write the document if there is none at `path` yet. False if there is.

    Afterwards one document exists, and no draft: neither a killed writer's nor a slower one's.
    """
    label = f".{path.name}."
    written = write_bytes_once(path, encode(document), label)
    with contextlib.suppress(OSError):  # the document is safe all the same
        for draft in path.parent.glob(f"{label}*.tmp"):
            draft.unlink(missing_ok=True)
    return written


def write_bytes(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write or replace the file at `path`, atomically and durably; `mode` less the umask."""
    write_chunks(path, (data,), mode)


def write_chunks(path: Path, chunks: Iterable[bytes], mode: int = 0o600) -> None:
    """Write or replace a file that comes in pieces, as `write_bytes` does."""
    with _draft(path, chunks, mode) as draft:
        draft.rename(path)
    sync_directory(path.parent)


def write_new(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name, durably, in a directory that nobody reads yet.

    All are written before the first `fsync`, which then flushes the others, too. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with contextlib.ExitStack() as stack:
        written = []
        for name, data in files.items():
            descriptor = os.open(directory / name, flags, 0o600)
            file = stack.enter_context(os.fdopen(descriptor, "wb"))
            file.write(data)
            file.flush()
            written.append(descriptor)
        for descriptor in written:
            os.fsync(descriptor)
    sync_directory(directory)


def write_bytes_once(path: Path, data: bytes, label: str = ".") -> bool:
    """Write the file if there is none at `path` yet, atomically and durably. False if there is.

    The names of its drafts begin with `label`.
    """
    try:
        with _draft(path, (data,), label=label) as draft:
            os.link(draft, path)
    except OSError:
        if path.exists():  # a faster writer may also have removed our draft
            return False
        raise
    sync_directory(path.parent)
    return True


def remove_drafts(directory: Path) -> None:
    """Remove the drafts of killed writers. Nobody else may write in the directory meanwhile."""
    for draft in directory.glob(".*.tmp"):
        draft.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make names created in `directory` survive a crash of the host."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def encode(document: dict[str, Any]) -> bytes:
    """Return the bytes of a document with its version, a line for each field.

    Raises ValueError for NaN and infinities, which are no JSON.
    """
    versioned = {"v": VERSION, **document}
    try:
        return _lines(versioned, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # lone surrogates: legal in JSON when escaped, never in UTF-8
        return _lines(versioned, ensure_ascii=True).encode()


def _lines(versioned: dict[str, Any], *, ensure_ascii: bool) -> str:
    # json's own indentation is pure Python, ten times slower: a tenth of taking a submission.
    dump = json.JSONEncoder(ensure_ascii=ensure_ascii, allow_nan=False).encode
    return "{\n" + ",\n".join(f" {dump(k)}: {dump(v)}" for k, v in versioned.items()) + "\n}\n"


@contextlib.contextmanager
def _draft(
    path: Path, chunks: Iterable[bytes], mode: int = 0o600, label: str = "."
) -> Iterator[Path]:
    """Write `chunks` to a temporary file beside `path`; gone afterwards unless renamed."""
    draft = path.with_name(f"{label}{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
