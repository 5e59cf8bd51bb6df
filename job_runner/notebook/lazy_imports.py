"""Spares a run the imports that it has no use for: they took a third of a short one.

What is left out is what other libraries import ahead: nothing that they do for a notebook needs it.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

_FORMATS = ("rfc3987_syntax", "rfc3986_validator", "isoduration")
_FOR_URLS = "requests"
_STORES = ("papermill.s3", "papermill.adl", "papermill.abs", "gcsfs", "pyarrow.fs", "github")


def stub_unused_imports() -> None:
    """Have nbformat and papermill imported without what no run needs; before they are.

    jsonschema, which nbformat needs, imports libraries for formats that no notebook has wherever
    they are installed (Jupyter Server brings them: a grammar for IRIs, and through durations all of
    arrow), and does without where they are missing. papermill imports `requests` for notebooks that
    lie behind URLs; ours are files.
    """
    for name in _FORMATS:
        sys.modules.setdefault(name, cast(ModuleType, None))
    sys.modules.setdefault(_FOR_URLS, _LazyModule(_FOR_URLS))


@contextlib.contextmanager
def without_remote_storage() -> Iterator[None]:
    """Have papermill imported without the clients of stores that notebooks may lie in elsewhere.

    It imports those that are installed. They are large, and some begin threads: pyarrow does, and
    numpy with it, so that nobody could be a copy of who had imported them (`ahead`).
    """
    left_out = [name for name in _STORES if name not in sys.modules]
    sys.modules.update(dict.fromkeys(left_out, cast(ModuleType, None)))
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]


class _LazyModule(ModuleType):
    """Stands for a module that is imported once something of it is asked for.

    importlib's LazyLoader would import it at once: the statement asks for its `__spec__`.
    """

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)
