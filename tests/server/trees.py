"""Whole folders at a glance: to see that a refused request left nothing behind."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

OTHERS = (".index", ".dispatcher", ".ipynb_checkpoints", "attempt-", ".attempt-")
"""What folders of others begin with: an index, a dispatcher's log, and what runners write."""


def tree(*folders: Path) -> dict[str, str]:
    """Each path below, with the digest of a file's bytes or where a link leads."""
    found = {}
    for folder in folders:
        for base, names, files in os.walk(folder):
            names[:] = [name for name in names if not name.startswith(OTHERS)]
            for name in [*names, *files]:
                path = Path(base, name)
                if path.is_symlink():
                    found[str(path)] = f"-> {path.readlink()}"
                elif path.is_file():
                    found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
                else:
                    found[str(path)] = "folder"
    return found
