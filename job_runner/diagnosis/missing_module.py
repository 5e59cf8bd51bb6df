"""Advice on a module that is not installed: whether the submitter has it, and from where."""

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
        # Where the submitter's own interpreter runs us, it lacks the module as well.
        self._other_environment = not (
            same_host and environment.get("interpreter") == sys.executable
        )
        self._isolated = bool(request.get("isolated")) or request.get("cwd") is None

    def advice(self, module: str) -> str:
        """Return the sentence on what to do about `module` (an import name)."""
        package = self._package(module)
        if package is not None and self._other_environment:
            cell = f"`%pip install {package}`" if package else "a `%pip install` of what brings it"
            return (
                f"It is in the environment you submitted from, not in this one: add {cell} "
                "to the notebook, or choose an image that has it."
            )
        place = "not in this environment"
        if self._packages and self._other_environment:
            place = "neither here nor in the environment you submitted from"
        text = (
            f"It is {place}: add `%pip install {package or module}` "
            "(if that is its name) to the notebook, or choose an image that has it."
        )
        if self._isolated:
            text += " If it is a file of your own, send it along (--input)."
        return text

    def _package(self, module: str) -> str | None:
        """Return the distribution that provides a module: by the request, else by its name.

        "" stands for a module that the submitter has from an unknown distribution.
        """
        normal = _normalize(module)
        namesake = next((n for n in self._packages if n and _normalize(n) == normal), None)
        if namesake is not None and not self._packages[namesake]:
            return namesake
        owners = (n for n, modules in self._packages.items() if isinstance(modules, list))
        return max((n for n in owners if module in self._packages[n]), default=None)


def _normalize(name: str) -> str:
    """Return a distribution's name as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()
