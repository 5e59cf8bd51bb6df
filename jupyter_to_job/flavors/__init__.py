"""The catalog: flavors (how much) and devices (which kind), from the one file that admins edit."""

from .catalog import Catalog, Choice, load_catalog
from .models import Device, Flavor

__all__ = ["Catalog", "Choice", "Device", "Flavor", "load_catalog"]
