"""The few variables of a submitter that others get: there may be secrets among the rest."""

from __future__ import annotations

from collections.abc import Mapping

ATTEMPT_VARIABLE = "JUPYTER_TO_JOB_ATTEMPT"
"""A kernel has this variable if it runs the notebook of a job."""
FOR_RUNS = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "JUPYTER_PATH",
        "JUPYTER_CONFIG_PATH",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ]
)
"""The variables that a run gets."""
_FOR_DISPATCHERS = frozenset(
    [
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_PLATFORM_DIRS",
        "PYTHONHOME",
        "PYTHONUSERBASE",
        "TMPDIR",
    ]
)
PREFIXES_FOR_RUNS = ("LC_", "CONDA_")
"""Prefixes of more of them."""
_DISPATCHER_PREFIXES = (*PREFIXES_FOR_RUNS, "JUPYTER_TO_JOB_", "XDG_", "CUDA_", "NVIDIA_")


def variables_for_runs(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a job's runner starts with."""
    return _select(environ, FOR_RUNS, PREFIXES_FOR_RUNS)


def variables_for_dispatchers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a dispatcher: whoever may look at one of its forks sees them."""
    return _select(environ, FOR_RUNS | _FOR_DISPATCHERS, _DISPATCHER_PREFIXES)


def _select(
    environ: Mapping[str, str], names: frozenset[str], prefixes: tuple[str, ...]
) -> dict[str, str]:
    return {k: v for k, v in environ.items() if k in names or k.startswith(prefixes)}
