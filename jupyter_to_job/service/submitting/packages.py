"""The packages of the submitter's environment, by which a run elsewhere explains a missing module.

Only submissions through a gateway carry them: a run on the submitter's machine has the very same
packages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...exchange.stamps import StampCache, stamp_of

_FOLDERS = frozenset(["site-packages", "dist-packages"])
_cache: StampCache[tuple[str, ...], dict[str, list[str]]] = StampCache()


def packages_of(argv: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the distributions that a kernel with this command has, with the import names of each.

    None where the kernel does not run in this process's environment. Callers must not change the
    result: it is the same object until something is installed or removed.
    """
    if not _runs_here(argv):
        return None
    folders = tuple(folder for folder in sys.path if Path(folder).name in _FOLDERS)
    stamps = tuple(stamp_of(folder) for folder in folders)
    return _cache.get(folders, None if None in stamps else stamps, installed_packages)


def installed_packages() -> dict[str, list[str]]:
    """Return every distribution on this process's path with the import names that are known."""
    from importlib.metadata import distributions, packages_distributions

    modules: dict[str, list[str]] = {d.name: [] for d in distributions() if d.name}
    for module, owners in packages_distributions().items():
        for owner in modules.keys() & set(owners):
            modules[owner].append(module)
    return modules


def _runs_here(argv: Sequence[str]) -> bool:
    """Tell whether a kernel's command runs in the environment of this process."""
    if not argv:
        return False
    program, version = argv[0], sys.version_info
    if program in ("python", f"python{version[0]}", f"python{version[0]}.{version[1]}"):
        return True  # jupyter_client puts its own interpreter there
    return Path(program).parent.resolve() == Path(sys.executable).parent.resolve()
