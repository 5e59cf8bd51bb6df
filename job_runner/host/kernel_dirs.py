"""The folders in which kernels are installed on this host."""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_core.paths import jupyter_path


def kernel_dirs() -> list[str]:
    """Return the folders that jupyter_client's KernelSpecManager searches by default.

    Its own default imports all of IPython, only to learn the last folder.
    """
    ipython = Path(os.environ.get("IPYTHONDIR") or Path.home() / ".ipython")
    return [*jupyter_path("kernels"), str(ipython / "kernels")]
