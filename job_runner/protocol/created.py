"""What an isolated run has created in its scratch folder, as runners and agents find it.

Where no outcome names these files, as of a killed run, its agent names them to the gateway before
it sends them. So a file of which only a part came, for whatever reason, is never taken for a whole
one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from . import documents, layout
from .fields import read_fields

IGNORED_FOLDERS = frozenset({"__pycache__", ".ipynb_checkpoints"})
"""Names of folders in which nothing counts as created."""


@dataclass(frozen=True)
class CreatedFile:
    """A file; `path` is relative to the workspace, `size` in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class CreatedFiles:
    """created.json: the files that an agent sends, and how many others it left out."""

    files: tuple[CreatedFile, ...]
    omitted: int = 0

    @classmethod
    def of(cls, sizes: Mapping[str, int], omitted: int = 0) -> CreatedFiles:
        """Return those of files with these sizes, as many as a document can name."""
        files = tuple(CreatedFile(*item) for item in sorted(sizes.items()))
        created = cls(files, omitted)
        while len(created.encode()) > documents.MAX_SENT_BYTES:
            count = len(created.files) * 9 // 10
            created = cls(files[:count], omitted + len(files) - count)
        return created

    def encode(self) -> bytes:
        """Return the bytes of the document."""
        return documents.encode(asdict(self))


def read_created(attempt_dir: Path) -> CreatedFiles | None:
    """Return what an agent said of an attempt, None if it said nothing that can be read."""
    try:
        document = documents.read_document(attempt_dir / layout.CREATED)
        return None if document is None else read_fields(CreatedFiles, document)
    except ValueError:
        return None


def is_same(status: os.stat_result, original: os.stat_result) -> bool:
    """Tell whether a file is the input that it began as (the copy took over the time)."""
    return (status.st_size, status.st_mtime_ns) == (original.st_size, original.st_mtime_ns)
