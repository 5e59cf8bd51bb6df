"""The user's file tree: freezing what is in it, and publishing results into it."""

from .freeze import Frozen, FrozenInput, freeze
from .publish import Published, publish

__all__ = ["Frozen", "FrozenInput", "Published", "freeze", "publish"]
