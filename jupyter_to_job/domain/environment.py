"""The few variables of a submitter that others get: there may be secrets among the rest."""

from __future__ import annotations

from collections.abc import Mapping

_FOR_RUNS = frozenset(
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
_PREFIXES = ("LC_", "CONDA_")
_DISPATCHER_PREFIXES = (*_PREFIXES, "JUPYTER_TO_JOB_", "XDG_", "CUDA_", "NVIDIA_")


def variables_for_runs(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a job's runner starts with."""
    return _select(environ, _FOR_RUNS, _PREFIXES)


def variables_for_dispatchers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a dispatcher: whoever may look at one of its forks sees them."""
    return _select(environ, _FOR_RUNS | _FOR_DISPATCHERS, _DISPATCHER_PREFIXES)


def _select(
    environ: Mapping[str, str], names: frozenset[str], prefixes: tuple[str, ...]
) -> dict[str, str]:
    return {k: v for k, v in environ.items() if k in names or k.startswith(prefixes)}
