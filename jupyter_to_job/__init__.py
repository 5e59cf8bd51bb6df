"""Jupyter to Job: submit the open notebook as a job and get it back executed.

`record` and `results` are for notebooks and scripts. They are imported when they are first used, so
that this package costs a kernel nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library.record import record
    from .library.results import results

__version__ = "0.1.0"
__all__ = ["record", "results"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.library.{name}"), name)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where the front end is built, for `jupyter-builder develop`, which links it."""
    return [{"src": "labextension", "dest": "jupyter-to-job"}]
