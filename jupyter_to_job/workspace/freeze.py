"""Freezes a notebook and its inputs: what is on disk at this moment, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..domain.errors import BadInput, BadNotebook, Stale, TooLarge

MAX_NOTEBOOK = 512 << 20


@dataclass(frozen=True)
class FrozenInput:
    """An input on disk: its workspace path, where it is, its size in bytes and its digest."""

    path: str
    source: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class Frozen:
    """The snapshot's bytes, its kernel's name (None: it names none), and what goes with it."""

    notebook: str
    source: Path
    data: bytes
    sha256: str
    kernel: str | None
    inputs: tuple[FrozenInput, ...] = ()


def freeze(
    root: Path, notebook: str, inputs: tuple[str, ...] = (), expected_sha256: str | None = None
) -> Frozen:
    """Read the notebook at workspace path `notebook`, and the inputs.

    Raises BadNotebook if it is missing or no notebook, Stale if its digest is not the expected
    one, BadInput for inputs that are missing or outside of the workspace.
    """
    source = locate(root, notebook)
    try:
        if source.stat().st_size > MAX_NOTEBOOK:
            raise TooLarge(f"{notebook} is over 512 MiB.", "Clear its outputs and submit again.")
        data = source.read_bytes()
    except OSError as error:
        raise BadNotebook(
            f"Cannot read {notebook}: {error.strerror}.", "Check the path and save the notebook."
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    if expected_sha256 is not None and digest != expected_sha256:
        raise Stale(f"{notebook} changed on disk after it was saved.", "Save it and submit again.")
    kernel = kernel_of(data, notebook)
    return Frozen(notebook, source, data, digest, kernel, _inputs(root, inputs))


def kernel_of(data: bytes, label: str) -> str | None:
    """Check that `data` is a notebook that can run, and return the kernel it names.

    Raises BadNotebook.
    """
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadNotebook(f"{label} is no notebook: {error}.") from error
    if not isinstance(document, dict) or not isinstance(document.get("nbformat"), int):
        raise BadNotebook(f"{label} is no notebook: it has no nbformat.")
    if document["nbformat"] == 4 and not isinstance(document.get("cells"), list):
        raise BadNotebook(f"{label} is no notebook: it has no cells.")
    metadata = document.get("metadata")
    spec = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = spec.get("name") if isinstance(spec, dict) else None
    return name if isinstance(name, str) and name else None


def locate(root: Path, path: str) -> Path:
    """Return the file behind a workspace path. Raises BadInput if it leads out of the workspace."""
    base = root.resolve()
    if path.startswith("/") or "\0" in path:
        raise BadInput(f"{path!r} is no path inside the workspace.")
    try:
        resolved = (base / path).resolve()
    except (OSError, RuntimeError) as error:  # a loop of links, or a name without end
        raise BadInput(f"{path!r} leads nowhere.") from error
    if not resolved.is_relative_to(base):
        raise BadInput(f"{path!r} leads out of the workspace.", "Copy the file into it.")
    return base / path


def _inputs(root: Path, names: tuple[str, ...]) -> tuple[FrozenInput, ...]:
    """Resolve files, folders and globs to files, each once, in order."""
    found: dict[str, FrozenInput] = {}
    for name in names:
        locate(root, name)
        try:
            matches = sorted(root.glob(name)) or [root / name]
        except ValueError as error:
            raise BadInput(f"{name!r} is no file, folder or pattern: {error}.") from error
        files = [f for match in matches for f in (_walk(match) if match.is_dir() else [match])]
        for file in files:
            path = file.relative_to(root).as_posix()
            found[path] = _freeze_input(locate(root, path), path)
    return tuple(found.values())


def _walk(folder: Path) -> list[Path]:
    return sorted(Path(base, f) for base, _, files in os.walk(folder) for f in files)


def _freeze_input(source: Path, path: str) -> FrozenInput:
    try:
        with source.open("rb") as file:
            digest = _digest(file)
            return FrozenInput(path, source, file.tell(), digest)
    except OSError as error:
        raise BadInput(f"Cannot read the input {path}: {error.strerror}.") from error


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()
