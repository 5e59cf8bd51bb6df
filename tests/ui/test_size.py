"""What the extension adds to a page: measured on what was built and installed."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

MOST = 60_000
"""Bytes of our own code after gzip, all parts together."""


def test_the_extension_is_small() -> None:
    environment = Path(os.environ.get("JUPYTER_TO_JOB_LAB_PYTHON", sys.executable)).parents[1]
    built = environment / "share" / "jupyter" / "labextensions" / "jupyter-to-job" / "static"
    scripts = list(built.glob("*.js"))
    assert any(path.name.startswith("remoteEntry") for path in scripts), built
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in scripts}
    assert sum(sizes.values()) < MOST, sizes
