"""Checks versions and settings: their values and sources, and likely typing errors."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from difflib import get_close_matches

from .. import session
from .result import CheckResult, ok, warning

_PACKAGES = ("papermill", "ipykernel", "jupyter-client", "nbformat", "jupyter-server")


def check_versions() -> Iterator[CheckResult]:
    """Report the versions that a bug report needs."""
    from importlib.metadata import PackageNotFoundError, version

    versions = [
        f"jupyter-to-job {version('jupyter-to-job')}",
        f"Python {platform.python_version()}",
    ]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            yield warning(f"{package} is missing.", f"python -m pip install {package}")
    yield ok(", ".join(versions))


def check_settings() -> Iterator[CheckResult]:
    """Report the settings that differ from their default. Raises BadInput for bad values."""
    from ...wiring.settings import DEFAULT, PREFIX

    settings = session.settings()
    changed = {name: source for name, source in settings.sources.items() if source != DEFAULT}
    for name, source in changed.items():
        yield ok(f"{name} = {getattr(settings, name)!s} ({source})")
    if not changed:
        yield ok("All as they are by default")
    for name in settings.unknown:
        yield warning(f"There is no setting {name}.", "Correct its name, or remove it.")
    variables = {PREFIX + name.upper(): name for name in settings.sources}
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX) and variable not in variables:
            matches = get_close_matches(variable, variables, n=1, cutoff=0.9)
            if matches:
                yield warning(f"{variable} is no setting.", f"Did you mean {matches[0]}?")
