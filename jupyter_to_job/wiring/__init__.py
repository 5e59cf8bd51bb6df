"""Settings, and which service this process gets: in process, or a controller's over REST."""

from .services import connect, open_workspace
from .settings import Settings

__all__ = ["Settings", "connect", "open_workspace"]
