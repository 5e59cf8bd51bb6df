"""The catalog: flavors (how much) and devices (which kind), from the one file that admins edit.

The models are imported on first use: they import pydantic, which takes longer than everything else
in a command such as `list`.
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
_LAZY = {"Catalog": "catalog", "Choice": "catalog", "Device": "models", "Flavor": "models"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
