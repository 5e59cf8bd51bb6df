"""Settings, and which service this process gets: in process, or a controller's over REST."""

from .services import connect
from .settings import Settings

__all__ = ["Settings", "connect"]
