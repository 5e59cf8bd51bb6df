"""Answers of the API server: documents, and its errors as ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
from kubernetes.aio import client

from ...backends.kubernetes.api_status import error_of_answer
from ...backends.kubernetes.records import Manifest
from ...domain.errors import Unavailable

REQUEST_TIMEOUT = 30
"""Seconds for a request that is no watch: a slow API server must not stop the whole queue."""

TRIAL_TIMEOUT = 3
"""The same where somebody waits for the answer, and can do without it."""


async def read_json(response: Any) -> Manifest:
    """Return the document in an unparsed response. Raises ApiException if it is an error.

    The client does not check the status of unparsed responses. Raises Unavailable if it is no JSON:
    no API server has sent it.
    """
    body = await response.read()
    if response.status >= 400:
        text = body.decode(errors="replace")
        raise client.ApiException(status=response.status, reason=response.reason, body=text)
    try:
        document: Manifest = json.loads(body)
    except ValueError as error:
        message = "Something else than Kubernetes answered: what it sent is not JSON."
        raise Unavailable(message) from error
    return document


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the client's errors to ours."""
    try:
        yield
    except client.ApiException as error:
        raise error_of_answer(error.status, error.body, error.reason) from error
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise Unavailable(f"Kubernetes cannot be reached: {error!r}.") from error
