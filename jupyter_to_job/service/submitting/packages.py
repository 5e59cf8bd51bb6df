"""Which packages the submitter's environment has: so that a missing module can be explained later.

Recorded with each job, so it has to be cheap: a listing of the folders that packages are installed
in, and one small file of those that are not called like what is imported. A process that lives long
does that again when one of these folders has changed.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from jupyter_core.paths import jupyter_path

from ...exchange.stamps import StampCache, stamp_of

_FOLDERS = frozenset(["site-packages", "dist-packages"])
_KINDS = (".dist-info", ".egg-info")
_NO_MODULES = (*_KINDS, ".pth", ".libs", ".data")
_EDITABLE = ("_editable_", "__editable__")
_NATIVE = re.compile(r"python(3(\.\d+)?)?")
_LARGEST = 2 << 20
"""Bytes of a list of installed files that are read for the names of its modules."""
_MOST = 5000
_DEFAULT_KERNEL = "python3"


def packages_of(kernel: str | None) -> dict[str, list[str]] | None:
    """Return the distributions that the kernel has, with the import names of each.

    No names: its own, as far as is known. The empty name has the modules of which it is not known
    whose they are. None where the kernel is not of this process's environment.
    """
    return installed(sys.path) if _is_ours(kernel or _DEFAULT_KERNEL) else None


def installed(path: Iterable[str]) -> dict[str, list[str]]:
    """Return what is installed in the folders of `path` that packages are installed in."""
    named = [folder for folder in path if Path(folder).name in _FOLDERS]
    folders = tuple(folder for folder in named if os.path.isdir(folder))  # noqa: PTH112 - text
    stamps = tuple(stamp_of(folder) for folder in folders)
    stamp = None if None in stamps else stamps
    return _installed.get(folders, stamp, functools.partial(_found, folders))


_installed: StampCache[tuple[str, ...], dict[str, list[str]]] = StampCache(max_entries=2)
"""The very same object until something is installed or removed: nobody may write in it."""


def _found(folders: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder in folders:
        for name, modules in _found_in(folder):
            found.setdefault(name, []).extend(modules)
    return dict(sorted(found.items())[:_MOST])


def _found_in(folder: str) -> Iterable[tuple[str, list[str]]]:
    try:
        entries = [entry.name for entry in os.scandir(folder)]
    except OSError:  # a path may name what is not there
        return
    there = {_stem(entry) for entry in entries if not entry.endswith(_NO_MODULES)}
    unclaimed = {name for name in there if name.isidentifier() and not name.startswith("_")}
    for entry in entries:
        if not entry.endswith(_KINDS):
            continue
        name = entry.partition("-")[0].removesuffix(".egg-info")
        own = re.sub(r"[-.]", "_", name)
        modules = [] if own in there else _modules(Path(folder, entry))
        unclaimed -= {own, *modules}
        yield name.replace("_", "-"), modules
    yield "", sorted(unclaimed)[:_MOST]


def _stem(entry: str) -> str:
    return entry.partition(".")[0]


def _modules(about: Path) -> list[str]:
    """Return the import names of a distribution that is not called like them."""
    listed = _read(about / "top_level.txt")
    if listed:  # newer tools do not write it
        return listed.split()
    lines = _read(about / "RECORD").splitlines()
    if any(line.startswith(_EDITABLE) for line in lines):
        return []  # its modules are elsewhere
    firsts = {line.partition(",")[0].partition("/")[0] for line in lines}
    names = {_stem(first) for first in firsts if not first.endswith(_NO_MODULES)}
    return sorted(name for name in names if name.isidentifier() and name != "__pycache__")


def _read(path: Path) -> str:
    """Return a file's text, or as much as there may be in it; nothing if it is not there."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""


def _is_ours(kernel: str) -> bool:
    """Tell whether a kernel runs in the environment of this process."""
    for folder in jupyter_path("kernels"):
        try:
            program = str(json.loads(Path(folder, kernel, "kernel.json").read_text())["argv"][0])
        except FileNotFoundError:
            continue
        except (OSError, ValueError, LookupError, TypeError):
            return False
        if _NATIVE.fullmatch(program):  # Jupyter puts its own interpreter there
            return True
        return Path(program).parent.resolve() == Path(sys.executable).parent.resolve()
    return kernel == _DEFAULT_KERNEL
