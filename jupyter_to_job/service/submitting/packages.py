"""The packages of the submitter's environment, by which a run elsewhere explains a missing module.

Only submissions through a gateway carry them: a run on the submitter's machine has the very same
packages.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...exchange.stamps import StampCache, stamp_of

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_FOLDERS = frozenset(["site-packages", "dist-packages"])
_cache: StampCache[tuple[str, ...], dict[str, list[str]]] = StampCache()


def packages_of(argv: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the distributions that the kernel of this command has, with the import names of each.

    None where the kernel does not run in this process's environment. Callers must not change the
    result: it is the same object until something is installed or removed.
    """
    if not _runs_here(argv):
        return None
    folders = tuple(f for f in sys.path if Path(f).name in _FOLDERS and Path(f).is_dir())
    stamps = tuple(stamp_of(folder) for folder in folders)
    return _cache.get(
        folders, None if None in stamps else stamps, lambda: installed_packages(folders)
    )


def installed_packages(folders: Sequence[str]) -> dict[str, list[str]]:
    """Return every distribution in these folders, with its import names.

    The empty name has the modules whose distribution is unknown.
    """
    from importlib.metadata import distributions

    packages: dict[str, list[str]] = {}
    for distribution in distributions(path=list(folders)):
        # A damaged distribution says nothing about the others.
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            if distribution.name:
                packages.setdefault(distribution.name, []).extend(_import_names(distribution))
    names = {_module_name(entry.name) for folder in folders for entry in Path(folder).iterdir()}
    public = {name for name in names if not name.startswith("_")}
    return {**packages, "": sorted(public.difference(*packages.values(), [""]))}


def _import_names(distribution: Distribution) -> list[str]:
    """Return what a distribution says that it brings, else what its installed files show."""
    declared = distribution.read_text("top_level.txt")
    if declared:
        return declared.split()
    return sorted({_module_name(file.parts[0]) for file in distribution.files or ()} - {""})


def _module_name(entry: str) -> str:
    """Return the import name of a file or folder beside the distributions; "" if it has none."""
    name = inspect.getmodulename(entry) or entry
    return name if name.isidentifier() and name != "__pycache__" else ""


def _runs_here(argv: Sequence[str]) -> bool:
    """Tell whether a kernel's command runs in the environment of this process."""
    if not argv:
        return False
    program, version = argv[0], sys.version_info
    if program in ("python", f"python{version[0]}", f"python{version[0]}.{version[1]}"):
        return True  # jupyter_client puts its own interpreter there
    return Path(program).parent.resolve() == Path(sys.executable).parent.resolve()
