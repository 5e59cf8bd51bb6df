"""Publishes a result in the workspace: exactly once, never over an existing file.

A temporary file in the target folder, fsync, then `link()` to the final name: a reader sees the
whole file or none, and two publishers cannot both win one name.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath

from ..domain.errors import BadInput
from .freeze import locate

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


class CannotPublish(BadInput):
    """The target folder is gone, read-only or full: the result is held and tried again."""

    code = "cannot_publish"


@dataclass(frozen=True)
class Published:
    """Where the result is (workspace path), and its digest."""

    path: str
    sha256: str


def publish(root: Path, notebook: str, output: str | None, name: str, data: bytes) -> Published:
    """Write `data` as `<name>.ipynb` beside `notebook`, or where `output` says.

    A file that is there with these very bytes counts as published; another one is left alone and
    the name becomes `<name>-2.ipynb`. Raises CannotPublish, saying why.
    """
    path = output or notebook
    try:
        for path in _candidates(root, notebook, output, name):
            if _write(locate(root, path), data):
                return Published(path, hashlib.sha256(data).hexdigest())
    except BadInput as error:
        raise CannotPublish(error.message, error.hint) from error
    except OSError as error:
        raise CannotPublish(
            f"Cannot write {path}: {error.strerror}.",
            "Mend the folder; then `jupyter-to-job deliver` takes it up again.",
        ) from error
    raise AssertionError("candidates never end")


def _candidates(root: Path, notebook: str, output: str | None, name: str) -> Iterator[str]:
    """Yield the workspace paths to try, in order."""
    folder, stem = PurePosixPath(notebook).parent, name
    if output is not None:
        asked = PurePosixPath(output)
        if locate(root, output).is_dir():
            folder = asked
        else:
            folder, stem = asked.parent, asked.name.removesuffix(".ipynb")
    yield str(folder / f"{stem}.ipynb")
    for number in count(2):
        yield str(folder / f"{stem}-{number}.ipynb")


def _write(target: Path, data: bytes) -> bool:
    """Create `target` with `data`. False if another file has the name."""
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as file:  # noqa: PTH123 - exclusive, and umask decides the mode
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            _link(draft, target, data)
        except FileExistsError:
            return not target.is_symlink() and _same(target, data)
        return True
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def _link(draft: Path, target: Path, data: bytes) -> None:
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: exclusive creation, then verified.
        with open(target, "xb") as file:  # noqa: PTH123
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.read_bytes() != data:
            raise OSError(errno.EIO, "what was written reads differently") from error


def _same(target: Path, data: bytes) -> bool:
    return target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data
