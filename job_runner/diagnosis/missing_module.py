"""Advice on a module that is not installed: whether the submitter has it, and from where."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from typing import Any


def missing_module_advice(request: Mapping[str, Any], module: str) -> str:
    """Return the sentence on what to do about `module` (an import name).

    `request` names the packages of the environment that it was submitted from (see protocol.md).
    """
    packages = request.get("packages")
    package = _find_package(packages, module) if isinstance(packages, dict) else None
    environment = request.get("environment") or {}
    # Where the submitter's own interpreter runs us, it lacks the module as well.
    own_environment = (socket.gethostname(), sys.executable)
    is_elsewhere = (environment.get("host"), environment.get("interpreter")) != own_environment
    # Only a run elsewhere may have an image that can be chosen.
    image = ", or choose an image that has it" if isinstance(packages, dict) else ""
    if package is not None and is_elsewhere:
        cell = f"`%pip install {package}`" if package else "a `%pip install` of what brings it"
        return (
            f"It is in the environment you submitted from, not in this one: add {cell} "
            f"to the notebook{image}."
        )
    place = "not in this environment"
    if packages and is_elsewhere:
        place = "neither here nor in the environment you submitted from"
    text = (
        f"It is {place}: add `%pip install {package or module}` "
        f"(if that is its name) to the notebook{image}."
    )
    if request.get("isolated") or request.get("cwd") is None:
        text += " If it is a file of your own, send it along as an input."
    return text


def _find_package(packages: Mapping[str, Any], module: str) -> str | None:
    """Return the distribution that provides a module: by the request, else by its name.

    "" stands for a module that the submitter has from an unknown distribution.
    """
    normal = _normalize(module)
    namesake = next((name for name in packages if name and _normalize(name) == normal), None)
    if namesake is not None and not packages[namesake]:
        return namesake
    owners = (name for name, modules in packages.items() if isinstance(modules, list))
    return max((name for name in owners if module in packages[name]), default=None)


def _normalize(name: str) -> str:
    """Return a distribution's name as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()
