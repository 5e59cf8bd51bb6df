"""A pretended NVIDIA driver library for tests on machines without GPUs: compiled when needed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

GIB = 1 << 30
SOURCE = Path(__file__).with_name("nvml.c")


def build(folder: Path, gpus: Mapping[str, Sequence[tuple[str, str]]]) -> Path:
    """Put a driver library into `folder`, which then belongs on LD_LIBRARY_PATH; return the folder.

    `gpus` maps the UUID of each GPU to its MIG devices, (UUID, profile) each. Every GPU has 16 GiB,
    of which 2 are used, and is busy for 25 %.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build the pretended driver with")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    lines = []
    for uuid, parts in gpus.items():
        lines.append(f"{uuid} {2 * GIB} {16 * GIB} 25")
        lines += [f"- {part} {profile}" for part, profile in parts]
    (folder / "devices").write_text("\n".join(lines) + "\n")
    return folder


def hang(folder: Path) -> None:
    """Let the driver in `folder` never answer again."""
    (folder / "devices").write_text("hang\n")
