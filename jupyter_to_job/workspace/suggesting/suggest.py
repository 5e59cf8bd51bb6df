"""Suggests as inputs the files of the workspace that a notebook's code refers to.

Modules are searched beside the notebook, and in folders that it adds to `sys.path`; the imports of
these modules are followed. No file outside the root is read, and nothing that is ignored or hidden
is suggested. Time and number are bounded, because a user waits for the dialog.
"""

from __future__ import annotations

import contextlib
import posixpath
import stat
import time
from collections.abc import Sequence
from dataclasses import replace

from ...domain.errors import BadInput, TooLarge
from ...domain.preflight import SuggestedInput
from ..freezing.ignore import Ignored, IgnoreFiles
from ..freezing.inputs import plan_inputs
from ..paths import Workspace
from .code_references import MAX_TEXT, CodeReference, code_references

MAX_SUGGESTED = 100
MAX_LOOKUPS = 2000
"""Paths that are looked up."""
MAX_FOLDERS = 500
"""Folders of a package that are looked into."""
MAX_SOURCE = 256 << 10
TIMEOUT = 0.2
"""Seconds after which the search ends with what it has."""
_PYTHON = ("python", "ipython")


def suggest(
    workspace: Workspace, notebook: str, code: Sequence[str], language: str | None
) -> tuple[SuggestedInput, ...]:
    """Return the files that the code of the notebook at a workspace path names, each once."""
    if language is not None and language.lower() not in _PYTHON:
        return ()
    finder = _Finder(workspace, notebook)
    with contextlib.suppress(_LimitReached):
        finder.read(code)
    return tuple(finder.suggestions.values())


class _LimitReached(Exception):
    """The search has used its time, or has enough results."""


class _Finder:
    def __init__(self, workspace: Workspace, notebook: str) -> None:
        self.suggestions: dict[str, SuggestedInput] = {}
        self._workspace = workspace
        self._notebook = posixpath.normpath(notebook)
        self._notebook_folder = posixpath.dirname(self._notebook)
        self._folders = [self._notebook_folder]
        self._ignore = IgnoreFiles(workspace)
        self._paths: set[str] = set()
        self._modules: list[str] = []
        self._lookups = 0
        self._deadline = time.monotonic() + TIMEOUT

    def read(self, code: Sequence[str]) -> None:
        """Collect what the code names, and what the modules that it imports import."""
        self._add_references(code, "")
        while self._modules and time.monotonic() < self._deadline:
            path = self._modules.pop()
            try:
                with self._workspace.open(path) as file:
                    source = file.read(MAX_SOURCE).decode(errors="replace")
            except (BadInput, OSError):
                continue
            self._add_references([source], path, imports_only=True)

    def _add_references(
        self, code: Sequence[str], module: str, *, imports_only: bool = False
    ) -> None:
        for reference in code_references(code):
            if module:
                reference = replace(reference, line=f"{reference.line} (in {module})")
            if reference.searched:
                folder = self._inside(reference.name)
                if folder is not None:
                    self._folders.append(folder)
            elif reference.module:
                self._module(reference)
            elif not imports_only:
                self._file(reference)

    def _module(self, reference: CodeReference) -> None:
        """Add the module, or the topmost package that it is in."""
        parts = reference.name.split(".")
        for folder in self._folders:
            for depth in range(1, len(parts) + 1):
                path = posixpath.join(folder, *parts[:depth])
                if self._mode(f"{path}.py") == stat.S_IFREG:
                    self._add(f"{path}.py", reference)
                    return
                if self._mode(f"{path}/__init__.py") == stat.S_IFREG:
                    self._add(path, reference)
                    return
                if self._mode(path) != stat.S_IFDIR:
                    break

    def _file(self, reference: CodeReference) -> None:
        text = reference.name
        if not 1 <= len(text) <= MAX_TEXT or "\n" in text or "://" in text:
            return
        path = self._inside(text)
        if path is not None and path != self._notebook and self._mode(path) == stat.S_IFREG:
            self._add(path, reference)

    def _inside(self, text: str) -> str | None:
        """Return a text as a workspace path, if it is a path from the notebook's folder."""
        path = posixpath.normpath(posixpath.join(self._notebook_folder, text))
        if path.startswith("/"):
            path = posixpath.relpath(path, self._workspace.root)
        return None if path == ".." or path.startswith("../") or "\0" in path else path

    def _mode(self, path: str) -> int | None:
        """Return the file type at a workspace path; None if it is missing or outside."""
        self._lookups += 1
        if self._lookups > MAX_LOOKUPS or time.monotonic() > self._deadline:
            raise _LimitReached
        try:
            return stat.S_IFMT(self._workspace.real(path).stat().st_mode)
        except (BadInput, OSError, ValueError):
            return None

    def _add(self, path: str, reference: CodeReference) -> None:
        """Suggest a file or a package, and note its sources: they may import others."""
        if path in self._paths:
            return
        self._paths.add(path)
        if self._is_left_out(path):
            return
        try:
            plan = plan_inputs(self._workspace, [path], max_folders=MAX_FOLDERS)
        except (BadInput, TooLarge, OSError):
            return
        if len(self.suggestions) == MAX_SUGGESTED:
            raise _LimitReached
        self.suggestions[path] = SuggestedInput(path, plan.total, reference.line)
        if reference.module:
            self._modules += [file.path for file in plan.files if file.path.endswith(".py")]

    def _is_left_out(self, path: str) -> bool:
        """Tell whether the path, or a folder that it is in, is ignored or hidden."""
        parts = path.split("/")
        if any(part.startswith(".") for part in parts):
            return True
        try:
            return any(
                self._ignore.judge("/".join(parts[:n]), folder=n < len(parts)) is not Ignored.NO
                for n in range(1, len(parts) + 1)
            )
        except BadInput:  # an ignore file that cannot be read: freezing reports it
            return True
