"""Checks kernels: does the program of each exist, and can the default kernel start?"""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence

from .result import CheckResult, ok, problem, warning

DEFAULT = "python3"
_START_TIMEOUT = 20
_OWN_PYTHONS = {"python", "python3", f"python{sys.version_info[0]}.{sys.version_info[1]}"}


def check() -> Iterator[CheckResult]:
    """Check every kernel that a notebook could name."""
    from ...wiring.kernels import configured_kernel_specs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # IPython's, of a home directory that is not writable
        specs = configured_kernel_specs()
    if DEFAULT not in specs:
        yield problem(
            f"There is no kernel {DEFAULT!r}, which notebooks without a kernel get.",
            "python -m pip install ipykernel && python -m ipykernel install --sys-prefix",
        )
    for name, entry in sorted(specs.items()):
        yield _check_kernel(name, entry["spec"].get("argv") or [""], entry["resource_dir"])


def _check_kernel(name: str, argv: Sequence[str], folder: str) -> CheckResult:
    # jupyter_client takes its own interpreter for these names, whatever PATH says.
    program = sys.executable if argv[0] in _OWN_PYTHONS else shutil.which(argv[0])
    if program is None:
        result = problem if name == DEFAULT else warning
        return result(
            f"{name}: its program {argv[0]!r} does not exist.",
            f"Install it, or remove the kernel: jupyter kernelspec remove {name}  ({folder})",
        )
    if name == DEFAULT and "ipykernel_launcher" in argv:
        try:
            process = subprocess.run(
                [program, "-c", "import ipykernel; print(ipykernel.__version__)"],
                cwd="/",  # `-c` looks for modules here first, and users have files of any name
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_START_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return problem(f"{name}: {program} does not start.", f"Run {program} by hand.")
        if process.returncode != 0:
            error = (process.stderr.strip().splitlines() or ["no message"])[-1]
            return problem(
                f"{name}: {program} cannot import ipykernel: {error}",
                f"{program} -m pip install ipykernel",
            )
        return ok(f"{name}: {program}, ipykernel {process.stdout.strip()}")
    return ok(f"{name}: {program}")
