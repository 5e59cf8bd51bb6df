"""The catalog: flavors (how much) and devices (which kind), from the one file that admins edit.

The models are imported when they are first asked for: they bring pydantic, which costs more time
than all else that a command such as `list` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .loader import SHIPPED, CatalogFile, load_catalog, parse_catalog

if TYPE_CHECKING:
    from .catalog import Catalog, Choice
    from .models import Device, Flavor

__all__ = [
    "SHIPPED", "Catalog", "CatalogFile", "Choice", "Device", "Flavor", "load_catalog",
    "parse_catalog",
]  # fmt: skip
_LATE = {"Catalog": "catalog", "Choice": "catalog", "Device": "models", "Flavor": "models"}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f".{_LATE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
