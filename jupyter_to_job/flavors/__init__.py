"""The catalog: flavors (how much) and devices (which kind), from the one file that admins edit.

`models` and `catalog` are not imported here: they import pydantic, which takes longer than
everything else in a command such as `list`.
"""

from .loader import SHIPPED, CatalogFile, load_catalog, parse_catalog

__all__ = ["SHIPPED", "CatalogFile", "load_catalog", "parse_catalog"]
