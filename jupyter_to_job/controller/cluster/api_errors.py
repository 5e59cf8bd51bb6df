"""Answers of the API server: documents, and its errors as ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
from kubernetes.aio import client

from ...backends.kubernetes.records import Manifest
from ...backends.kubernetes.refusals import WORD_OF_CLUSTER
from ...domain.errors import BadInput, Conflict, JobsError, NotFound, Refused, Unavailable

REQUEST_TIMEOUT = 30
"""Seconds for a request that is no watch: a slow API server must not stop the whole queue."""

TRIAL_TIMEOUT = 3
"""The same for a dry run: somebody waits for what it says, and it may say nothing."""


async def read_json(response: Any) -> Manifest:
    """Return the document in an unparsed response. Raises ApiException if it is an error.

    The client does not check the status of unparsed responses.
    """
    body = await response.read()
    if response.status >= 400:
        raise client.ApiException(status=response.status, reason=body.decode(errors="replace"))
    document: Manifest = json.loads(body)
    return document


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the client's errors to ours."""
    try:
        yield
    except client.ApiException as error:
        raise _error_of(error) from error
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise Unavailable(f"Kubernetes cannot be reached: {error!r}.") from error


_ERRORS_BY_STATUS: dict[int | None, type[JobsError]] = {
    400: BadInput,
    403: Refused,
    404: NotFound,
    409: Conflict,
    422: BadInput,
}


_WORDS_OF_POLICIES = ("denied the request", "denied request")
"""What the API server says of a webhook, and of a ValidatingAdmissionPolicy, under any status."""


def _error_of(error: client.ApiException) -> JobsError:
    """Return our error for one of the API server."""
    try:
        status: Manifest = json.loads(error.body or "")
        reason = str(status["message"])
        causes = [cause.get("reason") for cause in (status.get("details") or {}).get("causes", ())]
    except (TypeError, ValueError, KeyError, AttributeError):
        reason, causes = str(error.reason), []
    kind = _ERRORS_BY_STATUS.get(error.status, Unavailable)
    if "NamespaceTerminating" in causes:
        kind = NotFound
    elif any(words in reason for words in _WORDS_OF_POLICIES):
        kind = Refused
    return kind(f"{WORD_OF_CLUSTER} {error.status}: {reason}")
