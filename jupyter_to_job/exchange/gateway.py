"""The exchange behind a gateway, as dev pods reach it over HTTPS; agents have their own client.

The token is read from its file for each request, because the kubelet renews it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from .. import __version__, logs
from ..domain.environment import ATTEMPT_VARIABLE
from ..domain.errors import (
    ADDRESS_HINT,
    BadInput,
    JobsError,
    NoRoute,
    NotFound,
    Unavailable,
    error_of_answer,
)
from .stamps import format_stamp

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
PRODUCT = "jupyter-to-job/"
"""What stands before the version in `User-Agent` and `Server`."""
_TRUST_HINT = "JUPYTER_TO_JOB_GATEWAY_CA names a file with its authority's certificate, in PEM."
_log = logging.getLogger(__name__)


class Gateway:
    """A client of a gateway's REST API; it raises the errors of `domain.errors`.

    It checks the gateway's certificate against those in `ca_file`, or against the usual ones if
    that is empty. A renewed file counts for what begins after that, and a broken one changes
    nothing. No proxy of the environment is used: the gateway is in the cluster, and the token is
    nobody else's business.
    """

    def __init__(self, url: str, token_file: Path, ca_file: str = "") -> None:
        self._url = url
        self._token_file = token_file
        self._ca_file = ca_file
        self._ca_stamp = _ca_stamp(ca_file)
        self._client = self._make_client()

    def _make_client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self._url.rstrip("/") + "/api/",
            timeout=TIMEOUT,
            headers={"User-Agent": f"{PRODUCT}{__version__}"},
            verify=_trust(self._ca_file) if self._ca_file else httpx.create_ssl_context(),
            trust_env=False,
        )

    def _current_client(self) -> httpx.Client:
        """Return the client, a new one if the file with the certificates was renewed.

        The earlier one is not closed: other threads may be using it.
        """
        stamp = _ca_stamp(self._ca_file)
        if stamp != self._ca_stamp:
            try:
                self._client = self._make_client()
            except BadInput as error:
                _log.warning("the earlier certificates count: %s", error)
            self._ca_stamp = stamp
        return self._client

    def call(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send one request and return its answer. Raises errors of `domain.errors`."""
        with self.stream(method, path, **arguments) as response:
            response.read()
            return response

    @contextlib.contextmanager
    def stream(self, method: str, path: str, **arguments: Any) -> Iterator[httpx.Response]:
        """Send one request and yield its answer while it comes in. Raises as `call`."""
        headers = {**arguments.pop("headers", {}), "Authorization": f"Bearer {self._token()}"}
        if (request_id := logs.request_id()) is not None:
            headers[logs.HEADER] = request_id
        try:
            client = self._current_client()
            with client.stream(method, path, headers=headers, **arguments) as response:
                if response.status_code >= 400:
                    response.read()
                    kind = response.headers.get("Content-Type", "")
                    error = error_of_answer(response.status_code, response.content, kind)
                    raise with_versions(error, response.headers.get("Server", ""))
                if response.is_redirect:  # not followed: it may lead the token anywhere
                    target = response.headers.get("Location", "nowhere")
                    message = f"The gateway answered {response.status_code} and points to {target}."
                    raise Unavailable(message, ADDRESS_HINT)
                yield response
        except UnicodeEncodeError as error:
            character = ascii(error.object[error.start : error.end])
            raise BadInput(
                f"The gateway cannot be sent a text with {character}.",
                "Rename the file, or leave that character out.",
            ) from error
        except httpx.HTTPError as error:
            is_distrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            hint = _TRUST_HINT if is_distrusted else "Try again when it is back."
            raise Unavailable(f"The gateway cannot be reached: {error}.", hint) from error

    def _token(self) -> str:
        try:
            return self._token_file.read_text().strip()
        except OSError as error:
            if ATTEMPT_VARIABLE in os.environ:
                raise Unavailable(
                    "A job on a cluster has no token for the gateway.",
                    "Run the command where you submitted this job.",
                ) from error
            raise Unavailable(
                f"The token {self._token_file} cannot be read: {error.strerror}.",
                "The pod needs a projected service-account token for the audience jupyter-to-job.",
            ) from error


class GatewayExchange:
    """Implements `exchange.port.Exchange` over a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def read(self, job: str, path: str, offset: int = 0) -> bytes | None:
        """See the port."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        try:
            return self._gateway.call("GET", _piece(job, path), headers=headers).content
        except NotFound:
            return None

    def chunks(self, job: str, path: str, offset: int = 0) -> Iterator[bytes]:
        """Yield the bytes of one piece from `offset`, as they come in. Raises as `Gateway.call`."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        with self._gateway.stream("GET", _piece(job, path), headers=headers) as response:
            yield from response.iter_bytes()

    def size(self, job: str, path: str) -> int | None:
        """See the port."""
        try:
            answer = self._gateway.call("HEAD", _piece(job, path))
        except NotFound:
            return None
        return int(answer.headers["Content-Length"])

    def put(self, job: str, path: str, data: bytes) -> None:
        """See the port."""
        self._gateway.call("PUT", _piece(job, path), content=data)

    def append(self, job: str, path: str, offset: int, data: bytes) -> int:
        """See the port."""
        answer = self._gateway.call(
            "POST", _piece(job, path), params={"offset": offset}, content=data
        )
        length: int = json_of(answer)["length"]
        return length


class GatewayJob:
    """The pieces of one job of a gateway, as its delivery reads and writes them."""

    def __init__(self, exchange: GatewayExchange, job: str) -> None:
        self._exchange = exchange
        self._job = job

    def read(self, path: str, offset: int = 0) -> Iterator[bytes]:
        """Yield the bytes of one piece from `offset`, as they come in. Raises as `Gateway.call`."""
        return self._exchange.chunks(self._job, path, offset)

    def put(self, path: str, data: bytes) -> None:
        """See the port."""
        self._exchange.put(self._job, path, data)


def _ca_stamp(ca_file: str) -> str | None:
    """Return what changes with the file, None if there is none."""
    try:
        status = Path(ca_file).stat() if ca_file else None
    except OSError:
        return None
    # While it is being written, its size may change sooner than its time.
    return status and f"{format_stamp(status)}.{status.st_size}"


def _trust(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # an SSLError is one, too
        raise BadInput(
            f"The gateway's certificates cannot be read: {ca_file}: {error.strerror or error}.",
            _TRUST_HINT,
        ) from error


def json_of(answer: httpx.Response) -> Any:
    """Return what an answer holds. Raises Unavailable if it is no JSON: no gateway has sent it."""
    try:
        return answer.json()
    except ValueError as error:
        message = "Something else than a gateway answered: what it sent is not JSON."
        raise Unavailable(message, ADDRESS_HINT) from error


def with_versions(error: JobsError, server: str) -> JobsError:
    """Return a gateway's error, with both versions where they may be why it was raised.

    `server` is the answer's header of that name. Versions that differ by one minor work together.
    Of others one may use a route or a field that the other does not know.
    """
    is_ours = server.startswith(PRODUCT)
    theirs = server.removeprefix(PRODUCT)
    if is_ours and isinstance(error, BadInput | NoRoute) and _minor(theirs) != _minor(__version__):
        older = "the controller" if _minor(theirs) < _minor(__version__) else "this environment"
        error.hint = (
            f"{error.hint} The controller is version {theirs} and this environment {__version__}: "
            f"if that is why, upgrade jupyter-to-job in {older}."
        ).strip()
    return error


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _piece(job: str, path: str) -> str:
    # A run may give a file a name that is not UTF-8.
    return f"exchange/{quote(job)}/{quote(path, errors='surrogateescape')}"
