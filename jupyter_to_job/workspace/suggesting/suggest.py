"""Files that a notebook's own code names, and that are in the workspace: worth sending along.

Modules are looked for beside the notebook, and in what it adds to `sys.path`; a module's own
imports are followed. Nothing outside of the root is looked at, and nothing that is ignored or
hidden is suggested. All of it is bounded: somebody waits for a dialog.
"""

from __future__ import annotations

import contextlib
import posixpath
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...domain.errors import BadInput, TooLarge
from ..freezing.ignore import Ignored, IgnoreFiles
from ..freezing.inputs import plan_inputs
from ..paths import Workspace
from .code_references import MAX_TEXT, CodeReference, code_references

MAX_SUGGESTED = 100
MAX_LOOKS = 2000
"""Paths that are looked at."""
MAX_MODULES = 200
MAX_SOURCE = 256 << 10
PATIENCE = 0.2
"""Seconds after which what was found has to do."""
_PYTHON = ("python", "ipython")


@dataclass(frozen=True)
class Suggested:
    """A file, or a package's folder, by workspace path; its bytes, and the code that names it."""

    path: str
    size: int
    why: str


def suggest(
    workspace: Workspace, notebook: str, code: Sequence[str], language: str | None
) -> tuple[Suggested, ...]:
    """Return what the code of the notebook at a workspace path names, each thing once."""
    if language is not None and language.lower() not in _PYTHON:
        return ()
    finder = _Finder(workspace, notebook)
    with contextlib.suppress(_Enough):
        finder.read(code)
    return tuple(finder.found.values())


class _Enough(Exception):
    """A bound is reached."""


class _Finder:
    def __init__(self, workspace: Workspace, notebook: str) -> None:
        self.found: dict[str, Suggested] = {}
        self._workspace = workspace
        self._notebook = posixpath.normpath(notebook)
        self._beside = posixpath.dirname(self._notebook)
        self._folders = [self._beside]
        self._ignore = IgnoreFiles(workspace)
        self._seen: set[str] = set()
        self._modules: list[str] = []
        self._looks = 0
        self._until = time.monotonic() + PATIENCE

    def read(self, code: Sequence[str]) -> None:
        """Find what code names, and what the modules that it imports import."""
        self._take(code, "")
        while self._modules and self._looks < MAX_LOOKS:
            path = self._modules.pop()
            try:
                with self._workspace.open(path) as file:
                    source = file.read(MAX_SOURCE).decode(errors="replace")
            except (BadInput, OSError):
                continue
            self._take([source], path, imports_only=True)

    def _take(self, code: Sequence[str], where: str, *, imports_only: bool = False) -> None:
        for mention in code_references(code):
            if where:
                mention = replace(mention, line=f"{mention.line} (in {where})")
            if mention.searched:
                folder = self._inside(mention.name)
                if folder is not None:
                    self._folders.append(folder)
            elif mention.module:
                self._module(mention)
            elif not imports_only:
                self._file(mention)

    def _module(self, mention: CodeReference) -> None:
        """Take the module, or the topmost package that it is in."""
        parts = mention.name.split(".")
        for folder in self._folders:
            for depth in range(1, len(parts) + 1):
                path = posixpath.join(folder, *parts[:depth])
                if self._mode(f"{path}.py") == stat.S_IFREG:
                    self._add(f"{path}.py", mention, [f"{path}.py"])
                    return
                if self._mode(f"{path}/__init__.py") == stat.S_IFREG:
                    self._add(path, mention, list(self._members(path)))
                    return
                if self._mode(path) != stat.S_IFDIR:
                    break

    def _members(self, package: str) -> Iterator[str]:
        """Yield the sources of a package: they may import what is beside it."""
        try:
            plan = plan_inputs(self._workspace, [package])
        except (BadInput, TooLarge):
            return
        yield from (file.path for file in plan.files if file.path.endswith(".py"))

    def _file(self, mention: CodeReference) -> None:
        text = mention.name
        if not 1 <= len(text) <= MAX_TEXT or "\n" in text or "://" in text:
            return
        path = self._inside(text)
        if path is not None and path != self._notebook and self._mode(path) == stat.S_IFREG:
            self._add(path, mention, [])

    def _inside(self, text: str) -> str | None:
        """Return a text as a workspace path, if it is one seen from the notebook's folder."""
        path = posixpath.normpath(posixpath.join(self._beside, text))
        if path.startswith("/"):
            path = posixpath.relpath(path, self._workspace.root)
        return None if path == ".." or path.startswith("../") or "\0" in path else path

    def _mode(self, path: str) -> int | None:
        """Return what there is at a workspace path; None for nothing that may be looked at."""
        self._looks += 1
        if self._looks > MAX_LOOKS or time.monotonic() > self._until:
            raise _Enough
        try:
            return stat.S_IFMT(self._workspace.real(path).stat().st_mode)
        except (BadInput, OSError, ValueError):
            return None

    def _add(self, path: str, mention: CodeReference, modules: list[str]) -> None:
        if path in self._seen:
            return
        self._seen.add(path)
        if self._left_out(path):
            return
        try:
            size = plan_inputs(self._workspace, [path]).total
        except (BadInput, TooLarge, OSError):
            return
        if len(self.found) == MAX_SUGGESTED:
            raise _Enough
        self.found[path] = Suggested(path, size, mention.line)
        self._modules += modules[:MAX_MODULES]

    def _left_out(self, path: str) -> bool:
        """Tell whether the path, or a folder that it is in, is ignored or hidden."""
        parts = path.split("/")
        if any(part.startswith(".") for part in parts):
            return True
        try:
            return any(
                self._ignore.judge("/".join(parts[:n]), folder=n < len(parts)) is not Ignored.NO
                for n in range(1, len(parts) + 1)
            )
        except BadInput:  # an ignore file that cannot be read: it is said where it counts
            return True
