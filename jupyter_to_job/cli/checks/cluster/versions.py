"""Checks versions: of Kubernetes, the controller, its agents, and this client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .... import __version__
from ....domain.errors import Unavailable
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi
from .installation import Installation

OLDEST, OLDEST_TESTED = 30, 34
"""Minor versions of Kubernetes: the first with policies as ours, and the first that is tested."""


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check that all parts are of versions that work together."""
    version = api.get("/version")
    yield _kubernetes(str(version.get("gitVersion")), str(version.get("minor", "")))
    yield _images(installation.container["image"], installation.setting("agent_image"))
    try:
        health = json.loads(api.ask("GET", installation.health_path(), {}).body)
    except Unavailable as error:
        yield warning(f"The controller's version is not known: {error.message}", error.hint)
        return
    theirs = str(health.get("version"))
    message = f"The controller has version {theirs}"
    if theirs.split(".")[:2] == __version__.split(".")[:2]:
        yield ok(f"{message}, and this client {__version__}")
    else:
        yield warning(f"{message}; here is {__version__}.", "Bring both to one version.")


def _kubernetes(version: str, minor: str) -> CheckResult:
    digits = re.match(r"\d+", minor)
    number = int(digits[0]) if digits else 0
    message = f"Kubernetes {version}"
    if number < OLDEST:
        return problem(
            f"{message} has no ValidatingAdmissionPolicy, which keeps jobs apart.",
            f"Use 1.{OLDEST} or newer; it is tested with 1.{OLDEST_TESTED}.",
        )
    if number < OLDEST_TESTED:
        return warning(
            f"{message} is older than what this is tested with.", f"Use 1.{OLDEST_TESTED} or newer."
        )
    return ok(message)


def _images(controller: str, agent: str) -> CheckResult:
    if not agent:
        return problem(
            "JUPYTER_TO_JOB_AGENT_IMAGE is not set: the controller does not start.",
            f"Set it to the controller's image, {controller}.",
        )
    if agent == controller:
        return ok(f"Controller and agents: {controller}")
    return warning(
        f"The agents' image is {agent}, and the controller's is {controller}.",
        "Set JUPYTER_TO_JOB_AGENT_IMAGE to the controller's, unless both are one image.",
    )
