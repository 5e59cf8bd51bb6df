"""Turns the input patterns of a submission into a list of files, before any file is read.

It uses `stat` only, so a submission that is too large is refused at once. Entries that are left out
are counted, and `Plan.summary()` names their number.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from job_runner.protocol.units import format_bytes

from ...domain.errors import BadInput, TooLarge
from ...exchange.pieces import require_short_path
from ..paths import SpecialFile, Workspace
from .ignore import IGNORE_FILE, Ignored, IgnoreFiles

MAX_FILES = 10_000
MAX_FOLDERS = 10_000
"""Folders that are looked into: a few that link to one another have endlessly many paths.

A gateway takes as many of a submission: it makes each of them, durably.
"""
_ANY_DEPTH = "**"
_Pattern = tuple[str, ...]
"""The parts of a pattern that are not matched yet, one a folder. Empty: the entry itself."""
_EVERYTHING: _Pattern = (_ANY_DEPTH,)


@dataclass(frozen=True)
class Input:
    """A file to send: its workspace path, its size in bytes, and a function that opens it.

    `sha256` is the digest that it must have, None: any. `stored` is the file of the exchange that
    has its bytes already and never changes, if there is one; it has the digest, too.
    """

    path: str
    size: int
    open: Callable[[], BinaryIO]
    sha256: str | None = None
    stored: Path | None = None


@dataclass(frozen=True)
class Plan:
    """The files to send, each once, and the numbers of entries that were left out, by reason.

    `ignored` entries match a `.jobignore`. `hidden` ones begin with a dot, and their pattern does
    not. `skipped` ones are links that lead nowhere or out of the workspace, or pipes, sockets and
    devices. A folder that is left out counts as one.
    """

    files: tuple[Input, ...] = ()
    ignored: int = 0
    hidden: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """Return the bytes of all files together."""
        return sum(file.size for file in self.files)

    def summary(self) -> str:
        """Return one line, such as `sends 12 files, 3.4 MiB (2 left out by .jobignore)`."""
        left_out = [
            f"{count} {reason}"
            for count, reason in (
                (self.ignored, f"left out by {IGNORE_FILE}"),
                (self.hidden, "hidden"),
                (self.skipped, "links or special files"),
            )
            if count
        ]
        suffix = f" ({', '.join(left_out)})" if left_out else ""
        noun = "file" if len(self.files) == 1 else "files"
        return f"sends {len(self.files)} {noun}, {format_bytes(self.total)}{suffix}"


def plan_inputs(
    workspace: Workspace,
    patterns: Sequence[str],
    cap: int | None = None,
    max_folders: int = MAX_FOLDERS,
) -> Plan:
    """Return the files that match the patterns. `cap`: bytes that they may have in all.

    A pattern is a workspace path of a file or folder (an absolute one inside is fine, too), or a
    glob: `*`, `?`, `[a-z]`, and `**` for any number of folders. A file that is named in full is
    always taken. Within folders and globs the ignore files count, and as in a shell only patterns
    that begin with a dot match hidden names.

    Raises BadInput for a pattern that matches nothing or leads out, TooLarge over a cap.
    """
    finder = _Finder(workspace, IgnoreFiles(workspace), max_folders)
    for pattern in patterns:
        finder.add(pattern)
    plan = finder.plan()
    if cap is not None and plan.total > cap:
        largest = max(plan.files, key=lambda file: file.size)
        raise TooLarge(
            f"The inputs are {format_bytes(plan.total)}, over the limit of {format_bytes(cap)}; "
            f"the largest is {largest.path} ({format_bytes(largest.size)}).",
            f"Name less, list what is not needed in {IGNORE_FILE}, or raise "
            "JUPYTER_TO_JOB_INPUT_CAP.",
        )
    return plan


def check_count(paths: Iterable[str]) -> None:
    """Raise TooLarge for the paths of more files or folders than the inputs of a job may have."""
    folders: set[str] = set()
    for count, path in enumerate(paths, 1):
        if count > MAX_FILES:
            raise _too_many_files(path)
        folder = posixpath.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
        if len(folders) > MAX_FOLDERS:
            raise TooLarge(
                f"The inputs are in more than {MAX_FOLDERS:,} folders, {path} among them.",
                "Name less, or pack them into an archive.",
            )


@dataclass
class _Finder:
    """Collects files over several patterns."""

    workspace: Workspace
    ignore: IgnoreFiles
    remaining_folders: int
    files: dict[str, Input] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def plan(self) -> Plan:
        """Return the plan. An entry that one pattern left out may be taken by another one."""
        reasons = [reason for path, reason in self.left_out.items() if path not in self.files]
        counts = {reason: reasons.count(reason) for reason in ("ignored", "hidden", "skipped")}
        return Plan(tuple(self.files.values()), **counts)

    def add(self, pattern: str) -> None:
        """Take what matches one pattern."""
        count = len(self.left_out)
        if not list(self._matches(self._workspace_path(pattern))):
            was_left_out = len(self.left_out) > count
            raise BadInput(
                f"The input {pattern!r} matches no file"
                + (" that is not ignored or hidden." if was_left_out else "."),
                f"Name its files one by one, or change {IGNORE_FILE}."
                if was_left_out
                else "Check the path: it counts from the workspace's root.",
            )

    def _workspace_path(self, pattern: str) -> str:
        """Return a pattern as a workspace path without `.` and `..`."""
        if not pattern or "\0" in pattern:
            raise BadInput(f"{pattern!r} is no file, folder or pattern.")
        path = posixpath.normpath(pattern)
        if path.startswith("/"):
            path = posixpath.relpath(path, self.workspace.root)
        if path == ".." or path.startswith("../"):
            raise BadInput(f"{pattern!r} leads out of the workspace.", "Copy the file into it.")
        return path

    def _matches(self, path: str) -> Iterator[str]:
        """Take the file, the folder, or what matches the glob; yield the paths of the files."""
        real = self.workspace.real(path)
        try:
            mode = real.stat().st_mode
        except OSError:
            if any(mark in path for mark in "*?["):
                pattern = tuple(path.split("/"))
                yield from self._walk(".", self.workspace.root, {pattern}, frozenset())
            return
        require_short_path(path)
        if stat.S_ISDIR(mode):
            yield from self._walk(path, real, {_EVERYTHING}, frozenset())
        else:
            yield from self._take(path, real)

    def _walk(
        self,
        path: str,
        real: Path,
        patterns: Iterable[_Pattern],
        ancestors: frozenset[tuple[int, int]],
    ) -> Iterator[str]:
        """Take what matches in a folder and below; yield the paths of the files taken."""
        try:
            status = real.stat()
            with os.scandir(real) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            raise BadInput(f"Cannot read the folder {path}: {error.strerror}.") from error
        self.remaining_folders -= 1
        if self.remaining_folders < 0:
            raise TooLarge(
                f"The inputs have too many folders, {path} among them.",
                "Do links in them lead to one another? Name the folders that are needed.",
            )
        inode = (status.st_dev, status.st_ino)
        if inode in ancestors:  # a link to a folder above
            return
        for entry in entries:
            below = posixpath.normpath(f"{path}/{entry.name}")
            remaining = {parts for pattern in patterns for parts in _step(pattern, entry.name)}
            if remaining:
                yield from self._entry(below, entry, remaining, ancestors | {inode})
            else:
                self._note_hidden(below, entry, patterns)

    def _entry(
        self,
        path: str,
        entry: os.DirEntry[str],
        patterns: set[_Pattern],
        ancestors: frozenset[tuple[int, int]],
    ) -> Iterator[str]:
        """Take an entry that matches a pattern up to its own name, unless it is left out."""
        try:
            # Resolving is slow, and only a link needs it.
            real = self.workspace.real(path) if entry.is_symlink() else Path(entry.path)
            mode = real.stat().st_mode
        except (BadInput, OSError):
            self._leave_out(path, "skipped")
            return
        folder = stat.S_ISDIR(mode)
        if not folder and () not in patterns:
            return
        verdict = self.ignore.judge(path, folder=folder)
        if verdict is not Ignored.NO:
            self._leave_out(path, "ignored" if verdict is Ignored.BY_USER else "default")
        elif folder:
            _require_short_path(path)
            below = (patterns - {()}) | ({_EVERYTHING} if () in patterns else set())
            yield from self._walk(path, real, below, ancestors)
        elif stat.S_ISREG(mode):
            _require_short_path(path)
            yield from self._take(path, real)
        else:
            self._leave_out(path, "skipped")

    def _take(self, path: str, real: Path) -> Iterator[str]:
        """Take one file. Raises SpecialFile for anything that is no regular file."""
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SpecialFile(f"The input {path!r} is no regular file.", "Name files and folders.")
        self.files[path] = Input(path, status.st_size, partial(self.workspace.open, path))
        if len(self.files) > MAX_FILES:
            raise _too_many_files(path)
        yield path

    def _note_hidden(
        self, path: str, entry: os.DirEntry[str], patterns: Iterable[_Pattern]
    ) -> None:
        """Count an entry that would match if its name did not begin with a dot."""
        if not entry.name.startswith("."):
            return
        if not any(True for pattern in patterns for _ in _step(pattern, f"_{entry.name}")):
            return
        if self.ignore.judge(path, folder=entry.is_dir()) is Ignored.NO:
            self._leave_out(path, "hidden")

    def _leave_out(self, path: str, reason: str) -> None:
        self.left_out.setdefault(path, reason)


def _require_short_path(path: str) -> None:
    """Raise BadInput for a path that is too long to be sent, or too deep to be searched."""
    try:
        require_short_path(path)
    except BadInput as error:
        hint = f"{error.hint} List what is not needed in {IGNORE_FILE}."
        raise BadInput(error.message, hint) from error


def _too_many_files(path: str) -> TooLarge:
    return TooLarge(
        f"The inputs are more than {MAX_FILES:,} files, {path} among them.",
        f"Name less, or list what is not needed in {IGNORE_FILE}.",
    )


def _step(pattern: _Pattern, name: str) -> Iterator[_Pattern]:
    """Yield the remaining parts of a pattern below an entry `name`; nothing without a match.

    `()` stands for the entry itself. `**` matches any number of folders, and as the last part
    everything below; it never matches a hidden name.
    """
    if not pattern:
        return
    part, remaining = pattern[0], pattern[1:]
    is_hidden = name.startswith(".")
    if part == _ANY_DEPTH:
        if not is_hidden:
            yield pattern
            if not remaining:
                yield ()
        yield from _step(remaining, name)
    elif fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not is_hidden):
        yield remaining
