"""The checks of `doctor`: each looks at one part of an installation and says how to mend it."""

from .finding import Finding, Level, examined

__all__ = ["Finding", "Level", "examined"]
