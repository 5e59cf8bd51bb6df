"""Settings in force, where each came from, and what may be a typing error; versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from difflib import get_close_matches

from .. import session
from .result import CheckResult, ok, warning

_PACKAGES = ("papermill", "ipykernel", "jupyter-client", "nbformat", "jupyter-server")


def check_versions() -> Iterator[CheckResult]:
    """Name the versions that a report of a fault needs."""
    from importlib.metadata import PackageNotFoundError, version

    said = [f"jupyter-to-job {version('jupyter-to-job')}", f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            said.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            yield warning("versions", f"{package} is missing.", f"python -m pip install {package}")
    yield ok("versions", ", ".join(said))


def check_settings() -> Iterator[CheckResult]:
    """List what is not the default. Raises BadInput for what cannot be read."""
    from ...wiring.settings import DEFAULT, PREFIX

    area, settings = "settings", session.settings()
    given = {name: source for name, source in settings.sources.items() if source != DEFAULT}
    for name, source in given.items():
        yield ok(area, f"{name} = {getattr(settings, name)!s} ({source})")
    if not given:
        yield ok(area, "All as they are by default")
    for name in settings.unknown:
        yield warning(area, f"There is no setting {name}.", "Mend its name, or remove it.")
    variables = {PREFIX + name.upper(): name for name in settings.sources}
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX) and variable not in variables:
            near = get_close_matches(variable, variables, n=1, cutoff=0.9)
            if near:
                yield warning(area, f"{variable} is no setting.", f"Did you mean {near[0]}?")
