"""Clients and gateways of different versions: what does not work says which of them is too old.

What answers in place of a gateway has no version, and no errors of ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from jupyter_to_job import __version__
from jupyter_to_job.controller import handler
from jupyter_to_job.domain.errors import BadInput, JobsError, NoRoute, NotFound, Unavailable
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.gateway import Gateway

from ..gateways import context_of, serving
from .test_routes import Fetch, post, refusal


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    exchange = FileExchange(tmp_path / "exchange")
    exchange.prepare()
    token = tmp_path / "token"
    token.write_text("me")
    with context_of(exchange) as context, serving(context) as url:
        yield Gateway(url, token)


def newer_route(gateway: Gateway) -> None:
    """Use what only another version may have."""
    gateway.call("GET", "forecasts")


def newer_field(gateway: Gateway) -> None:
    """Send a field that only another version may know."""
    gateway.call("POST", "jobs", json={"notebook": "a.ipynb", "forecast": True})


@pytest.mark.parametrize(("use", "error"), [(newer_route, NoRoute), (newer_field, BadInput)])
@pytest.mark.parametrize(
    ("version", "older"), [("99.1.0", "in this environment"), ("0.0.3", "in the controller")]
)
def test_the_older_one_is_named(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Gateway], None],
    error: type[JobsError],
    version: str,
    older: str,
) -> None:
    monkeypatch.setattr(handler, "__version__", version)
    with pytest.raises(error) as caught:
        use(gateway)
    assert f"version {version}" in caught.value.hint
    assert __version__ in caught.value.hint
    assert older in caught.value.hint


async def test_a_server_gives_no_hint_where_it_has_no_route(jp_fetch: Fetch) -> None:
    # By this JupyterLab knows that the server is too old, and not a controller behind it.
    _, error = await refusal(post(jp_fetch, "forecasts"))
    assert (error["code"], error["hint"]) == ("no_route", "")


def test_a_patch_release_is_no_other_version(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    major, minor, _ = __version__.split(".")
    monkeypatch.setattr(handler, "__version__", f"{major}.{minor}.99")
    with pytest.raises(NoRoute) as caught:
        newer_route(gateway)
    assert "version" not in caught.value.hint


def test_what_is_not_there_is_no_matter_of_versions(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "__version__", "99.1.0")
    with pytest.raises(NotFound) as caught:
        gateway.call("GET", "jobs/no-such-job")
    assert "version" not in caught.value.hint


class _Proxy(BaseHTTPRequestHandler):
    """Says in its own form that there is no gateway behind it."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b'{"status": 503, "error": "Service Unavailable"}')


def test_an_answer_of_something_in_between(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("me")
    with HTTPServer(("127.0.0.1", 0), _Proxy) as server:
        threading.Thread(target=server.handle_request).start()
        with pytest.raises(Unavailable, match="The gateway answered 503"):
            Gateway(f"http://127.0.0.1:{server.server_port}", token).call("GET", "jobs")
