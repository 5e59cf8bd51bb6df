"""Imports papermill and nbformat without the libraries that no run needs.

A runner that is started as a program spends most of a short run on these imports: without the
stubs papermill alone takes three times as long. A forked run finds everything imported.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

_FORMAT_LIBRARIES = ("rfc3987_syntax", "rfc3986_validator", "isoduration")
_REMOTE_STORAGE = (
    "papermill.s3",
    "papermill.adl",
    "papermill.abs",
    "gcsfs",
    "pyarrow.fs",
    "github",
)


def import_papermill() -> None:
    """Import papermill and nbformat, as far as preparing a notebook needs them."""
    stub_unused_imports()
    try:
        with _without_remote_storage():
            _import_papermill()
    except ImportError:  # somebody's extension of papermill needs one of the clients
        _import_papermill()


def stub_format_libraries() -> None:
    """Keep jsonschema, which nbformat needs, from importing libraries for formats.

    jsonschema imports them where they are installed, as they are beside Jupyter Server: a grammar
    of IRIs, and all of arrow for durations. No notebook has such formats.
    """
    for name in _FORMAT_LIBRARIES:
        sys.modules.setdefault(name, cast(ModuleType, None))


def stub_unused_imports() -> None:
    """Stub what nbformat and papermill import needlessly. Call it before either is imported.

    papermill imports `requests` for notebooks behind URLs, and ours are files.
    """
    stub_format_libraries()
    sys.modules.setdefault("requests", _LazyModule("requests"))


def _import_papermill() -> None:
    import nbformat.v4.rwbase  # noqa: F401
    import papermill.execute
    import papermill.iorw
    import papermill.parameterize  # noqa: F401


@contextlib.contextmanager
def _without_remote_storage() -> Iterator[None]:
    """Have papermill imported without the clients of remote storage.

    They are large, and some start threads (pyarrow, hence numpy). A process that has threads cannot
    be forked safely (see `preload`).
    """
    stubbed = [name for name in _REMOTE_STORAGE if name not in sys.modules]
    sys.modules.update(dict.fromkeys(stubbed, cast(ModuleType, None)))
    try:
        yield
    finally:
        for name in stubbed:
            del sys.modules[name]


class _LazyModule(ModuleType):
    """Stands for a module that is imported at the first access to one of its attributes.

    importlib's LazyLoader would import it at once: the import statement reads its `__spec__`.
    """

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)
