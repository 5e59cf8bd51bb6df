"""Checks a gateway: is it reached, does it accept our token, does it have our version?"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from ...domain.errors import BadInput, JobsError, Unavailable
from .. import session
from .result import CheckResult, ok, problem, warning


def check() -> Iterator[CheckResult]:
    """Check the gateway that is configured."""
    from ...exchange.gateway import Gateway, json_of

    settings = session.settings()
    token_file = Path(settings.gateway_token_file)
    try:
        gateway = Gateway(settings.gateway, token_file, settings.gateway_ca)
    except BadInput as error:
        yield problem(error.message, error.hint)
        return
    try:
        health = json_of(gateway.call("GET", "health"))
    except Unavailable as error:
        yield problem(f"{settings.gateway}: {error.message}", error.hint)
        return
    own_version, gateway_version = version("jupyter-to-job"), str(health.get("version"))
    message = f"{settings.gateway} answers: {health.get('status')}, version {gateway_version}"
    if own_version.split(".")[:2] == gateway_version.split(".")[:2]:
        yield ok(message)
    else:
        yield warning(f"{message}; here is {own_version}.", "Bring both to one version.")
    try:
        gateway.call("GET", "jobs", params={"limit": 1})
    except JobsError as error:
        yield problem(f"It does not take our token: {error.message}", error.hint)
    else:
        yield ok(f"It takes the token in {settings.gateway_token_file}")
