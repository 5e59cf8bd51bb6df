"""The checks of `doctor`: each looks at one part of an installation and says how to mend it."""

from .result import CheckResult, Level, examined

__all__ = ["CheckResult", "Level", "examined"]
