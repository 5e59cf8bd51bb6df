"""Behind a gateway: is it reached, does it take our token, is it of our version?"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from ...domain.errors import JobsError, Unavailable
from .. import session
from .result import CheckResult, ok, problem, warning

AREA = "gateway"


def check() -> Iterator[CheckResult]:
    """Ask the gateway."""
    from ...exchange.gateway import Gateway

    settings = session.settings()
    gateway = Gateway(settings.gateway, Path(settings.gateway_token_file))
    try:
        health = gateway.call("GET", "health").json()
    except Unavailable as error:
        yield problem(AREA, f"{settings.gateway}: {error.message}", error.hint)
        return
    ours, theirs = version("jupyter-to-job"), str(health.get("version"))
    said = f"{settings.gateway} answers: {health.get('status')}, version {theirs}"
    if ours.split(".")[:2] == theirs.split(".")[:2]:
        yield ok(AREA, said)
    else:
        yield warning(AREA, f"{said}; here is {ours}.", "Bring both to one version.")
    try:
        gateway.call("GET", "jobs", params={"limit": 1})
    except JobsError as error:
        yield problem(AREA, f"It does not take our token: {error.message}", error.hint)
    else:
        yield ok(AREA, f"It takes the token in {settings.gateway_token_file}")
