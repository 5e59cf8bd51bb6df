"""The default backend: runners as processes on this machine, started by the dispatcher."""

from .backend import LocalBackend

__all__ = ["LocalBackend"]
