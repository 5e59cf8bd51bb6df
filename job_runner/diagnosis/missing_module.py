"""What to say of a module that is not installed: whether the submitter had it, and from where."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from typing import Any


class MissingModuleAdvice:
    """Advice for a missing module, from the packages that `request` names (see protocol.md)."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        packages = request.get("packages")
        self._packages: dict[str, list[str]] = packages if isinstance(packages, dict) else {}
        environment = request.get("environment") or {}
        same_host = environment.get("host") == socket.gethostname()
        # Where the submitter's interpreter runs us, "there" is "here".
        self._elsewhere = not (same_host and environment.get("interpreter") == sys.executable)
        self._alone = bool(request.get("isolated")) or request.get("cwd") is None

    def advice(self, module: str) -> str:
        """Return the sentence on what to do about `module` (an import name)."""
        package = self._package(module)
        if package is not None and self._elsewhere:
            what = f"`%pip install {package}`" if package else "a `%pip install` of what brings it"
            return (
                f"It is in the environment you submitted from, not in this one: add {what} "
                "to the notebook, or choose an image that has it."
            )
        where = ""
        if self._packages and self._elsewhere:
            where = "It is neither here nor in the environment you submitted from: add"
        text = (
            f"{where or 'It is not in this environment: add'} `%pip install {package or module}` "
            "(if that is its name) to the notebook, or choose an image that has it."
        )
        if self._alone:
            text += " If it is a file of your own, send it along (--input)."
        return text

    def _package(self, module: str) -> str | None:
        """Return the distribution that has a module: by what is recorded, else by its name.

        Empty: the module was there, but nobody knows what brought it.
        """
        plain = _normal(module)
        named = next((name for name in self._packages if name and _normal(name) == plain), None)
        if named is not None and not self._packages[named]:
            return named
        owners = (n for n, modules in self._packages.items() if isinstance(modules, list))
        return max((n for n in owners if module in self._packages[n]), default=None)


def _normal(name: str) -> str:
    """Return a distribution's name as PyPI compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()
