"""Ignore rules for folders and globs of inputs: `.jobignore` files in gitignore's syntax.

As in git, the rules of a file apply to its own folder and below, deeper files override them, and an
ignored folder is not searched. pathspec, which implements the syntax, is imported on first use.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ...domain.errors import BadInput
from ..paths import Workspace

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".jobignore"
MAX_IGNORE_FILE = 1 << 20
DEFAULTS = (
    ".git/",
    ".hg/",
    ".svn/",
    ".ipynb_checkpoints/",
    ".jupyter-to-job-*.tmp*",
    ".venv/",
    ".virtual_documents/",
    ".DS_Store",
    IGNORE_FILE,
    "__pycache__/",
    "*.py[co]",
    "node_modules/",
)
"""Ignored without being counted. A `.jobignore` at the root may include one again with `!`."""


class Ignored(Enum):
    """Whether an entry is left out, and by which rules."""

    NO = "no"
    BY_DEFAULT = "by default"
    BY_USER = "by user"


@dataclass
class IgnoreFiles:
    """The ignore files of a workspace, each read once."""

    workspace: Workspace
    _specs: dict[str, GitIgnoreSpec | None] = field(default_factory=dict)

    def judge(self, path: str, *, folder: bool) -> Ignored:
        """Tell whether the entry at a workspace path is left out. Raises BadInput."""
        entry = path + "/" if folder else path
        base = posixpath.dirname(path)
        while True:
            spec = self._spec(base)
            below = entry[len(base) + 1 :] if base else entry
            verdict = spec.check_file(below) if spec is not None else None
            if verdict is not None and verdict.include is not None:
                if not verdict.include:
                    return Ignored.NO
                by_default = not base and (verdict.index or 0) < len(DEFAULTS)
                return Ignored.BY_DEFAULT if by_default else Ignored.BY_USER
            if not base:
                return Ignored.NO
            base = posixpath.dirname(base)

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = self._read(folder)
        return self._specs[folder]

    def _read(self, folder: str) -> GitIgnoreSpec | None:
        """Return the rules of one folder; those of the root begin with the defaults."""
        from pathspec import GitIgnoreSpec

        path = posixpath.join(folder, IGNORE_FILE)
        lines = list(DEFAULTS) if not folder else []
        try:
            with self.workspace.open(path) as file:
                data = file.read(MAX_IGNORE_FILE + 1)
            if len(data) > MAX_IGNORE_FILE:
                raise BadInput(f"{path} is over 1 MiB.", "Write fewer rules.")
            lines += data.decode("utf-8-sig").splitlines()  # Notepad writes a mark
        except FileNotFoundError:
            pass
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"Cannot read {path}: {error}.") from error
        try:
            return GitIgnoreSpec.from_lines(lines) if lines else None
        except ValueError as error:  # pathspec's error, whose name differs between versions
            raise BadInput(f"{path} has a rule that is none: {error}.") from error
