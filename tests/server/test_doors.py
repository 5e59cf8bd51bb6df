"""Every route refuses what it must, whoever asks and however; what is refused writes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nbformat.v4 as v4
import pytest
from jupyter_server.auth import Authorizer
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from . import openapi
from .test_routes import API, ended, post, refusal, write_notebook
from .trees import tree

Fetch = Callable[..., Awaitable[Any]]
OPERATIONS = openapi.operations()


@pytest.fixture
def url(jp_serverapp: ServerApp, jp_http_port: int, http_server_client: Any) -> str:
    return f"http://127.0.0.1:{jp_http_port}{jp_serverapp.base_url}"


@pytest.fixture
def job(jp_fetch: Fetch, jp_root_dir: Path, jp_asyncio_loop: asyncio.AbstractEventLoop) -> str:
    """A finished job, so that a route that let somebody in would have something to give away."""
    write_notebook(jp_root_dir, "train.ipynb", "print(6 * 7)")

    async def made() -> str:
        answer = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})
        name: str = json.loads(answer.body)["name"]
        await ended(jp_fetch, name)
        return name

    return jp_asyncio_loop.run_until_complete(made())


async def ask(
    url: str, method: str, headers: dict[str, str], body: bytes | None = None
) -> HTTPResponse:
    """A request by itself: no token, no cookie that is not given."""
    sent = b"{}" if method == "POST" and body is None else body
    return await AsyncHTTPClient().fetch(
        url, method=method, body=sent, headers=headers, follow_redirects=False, raise_error=False
    )


async def test_no_token_and_a_wrong_one(
    url: str, job: str, exchange: Path, jp_root_dir: Path
) -> None:
    before = tree(exchange, jp_root_dir)
    for operation in OPERATIONS:
        where = f"{url}jupyter-to-job/api/{operation.path(name=job)}"
        for headers in ({}, {"Authorization": "token wrong"}, {"Cookie": "username-x=y"}):
            answer = await ask(where, operation.method, headers)
            assert answer.code == 403, f"{operation} {headers}"
            openapi.validate("Failure", json.loads(answer.body))
            assert json.loads(answer.body)["error"]["code"] == "unauthenticated"
            assert job not in answer.body.decode()
    assert tree(exchange, jp_root_dir) == before


async def test_nothing_of_a_body_is_taken_from_somebody_unknown(url: str) -> None:
    answer = await ask(f"{url}jupyter-to-job/api/jobs", "POST", {}, b"x" * (3 << 20))
    assert answer.code == 403


async def test_a_refusal_says_that_it_ends_the_connection(
    url: str, jp_serverapp: ServerApp, jp_http_port: int
) -> None:
    """A proxy would send somebody else's next request on it, and answer that one with a 503."""
    token = jp_serverapp.identity_provider.token
    closes = {"GET": b"HTTP/1.1 403", "POST": b"HTTP/1.1 403", "NONE": b"HTTP/1.1 405"}
    for method, status in closes.items():
        head = await asyncio.wait_for(heads(jp_http_port, url, method), 20)
        assert head.startswith(status)
        assert b"\r\nconnection: close\r\n" in head.lower()
    twice = await asyncio.wait_for(heads(jp_http_port, url, "GET", token, times=2), 20)
    assert twice.count(b"HTTP/1.1 200") == 2
    assert b"connection: close" not in twice.lower()


async def heads(port: int, url: str, method: str, token: str = "no", times: int = 1) -> bytes:
    """What comes back to requests one after the other on one connection, which stays open."""
    path = url.partition(f":{port}")[2]
    asked = f"{method} {path}jupyter-to-job/api/health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    asked += f"Authorization: token {token}\r\nContent-Length: 0\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = b""
    for _ in range(times):
        writer.write(asked.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None, head
        answers += head + await reader.readexactly(int(length[1]))
    writer.close()
    return answers


async def test_a_cookie_needs_the_xsrf_header(
    url: str, job: str, exchange: Path, jp_root_dir: Path, jp_serverapp: ServerApp
) -> None:
    """As a page of another origin would send it: the browser's cookies, and no header."""
    login = await ask(f"{url}login?token={jp_serverapp.identity_provider.token}", "GET", {})
    cookies = [c.partition(";")[0] for c in login.headers.get_list("Set-Cookie")]
    cookie = "; ".join(cookies)
    where = f"{url}jupyter-to-job/api/"
    assert (
        await ask(f"{where}health", "GET", {"Cookie": cookie})
    ).code == 200  # the cookie itself is good

    before = tree(exchange, jp_root_dir)
    for operation in OPERATIONS:
        if operation.method != "GET":
            path = f"{where}{operation.path(name=job)}"
            for headers in ({}, {"X-XSRFToken": "wrong"}):
                answer = await ask(path, operation.method, {"Cookie": cookie, **headers})
                assert answer.code == 403, f"{operation} {headers}"
                assert json.loads(answer.body)["error"]["code"] == "unauthenticated"
    assert tree(exchange, jp_root_dir) == before
    right = {"Cookie": f"{cookie}; _xsrf=both", "X-XSRFToken": "both"}
    assert (await ask(f"{where}jobs/{job}/cancel", "POST", right)).code == 202


class Rights(Authorizer):
    """Somebody who has some rights only."""

    rights: frozenset[str] = frozenset()

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        return resource == "jupyter-to-job" and action in self.rights


@pytest.mark.parametrize("rights", [(), ("read",), ("read", "write"), ("execute",)])
async def test_another_user_has_only_their_rights(
    jp_fetch: Fetch,
    job: str,
    exchange: Path,
    jp_root_dir: Path,
    jp_serverapp: ServerApp,
    rights: tuple[str, ...],
) -> None:
    authorizer = Rights()
    authorizer.rights = frozenset(rights)
    jp_serverapp.web_app.settings["authorizer"] = authorizer
    before = tree(exchange, jp_root_dir)
    for operation in OPERATIONS:
        if operation.right not in rights:
            body = "{}" if operation.method == "POST" else None
            asked = jp_fetch(
                *API, *operation.path(name=job).split("/"), method=operation.method, body=body
            )
            status, error = await refusal(asked)
            assert (status, error["code"]) == (403, "forbidden"), operation
    assert tree(exchange, jp_root_dir) == before
    if "read" in rights:
        health = json.loads((await jp_fetch(*API, "health")).body)
        assert health["events"] is False  # so that a page can say why nothing moves by itself


NAMES = [
    "..", "%2e%2e", "..%2f..%2fetc", "%2e%2e%2fpasswd", "%2fetc%2fpasswd", "a%00b-aaaaaaaa",
    "train-aaaaaaaa%00", ".index", ".keys", "TRAIN-AAAAAAAA", "train-aaaaaaaa%0a", "%ff-aaaaaaaa",
    "a" * 5000,
]  # fmt: skip


async def test_no_path_leads_out_of_the_exchange(
    url: str, job: str, exchange: Path, jp_root_dir: Path, jp_serverapp: ServerApp
) -> None:
    (exchange.parent / "secret-aaaaaaaa").mkdir()
    before = tree(exchange, jp_root_dir)
    token = {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
    for operation in OPERATIONS:
        for name in NAMES if "{name}" in operation.template else ():
            where = f"{url}jupyter-to-job/api/{operation.path(name=name)}"
            answer = await ask(where, operation.method, token)
            assert answer.code in (400, 404), (str(operation), name)
    assert tree(exchange, jp_root_dir) == before


ESCAPES = [
    "../outside.ipynb", "/etc/passwd", "a\0.ipynb", "out/a.ipynb", "link.ipynb", "loop/a.ipynb",
    "x/../../outside.ipynb", "\ud800.ipynb", "~/../../etc/passwd/../../../outside.ipynb",
]  # fmt: skip
NO_NOTEBOOKS = [
    "%2e%2e/outside.ipynb",
    "",
    "." * 5000,
    "train.ipynb/",
    "pipe.ipynb",
    ".",
    "missing",
]
"""What is no notebook, but could be named as an output all the same."""


async def test_no_path_leads_out_of_the_workspace(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, tmp_path: Path
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    outside = tmp_path / "outside"
    outside.mkdir()
    write_notebook(jp_root_dir.parent, "outside.ipynb", "1")
    write_notebook(outside, "a.ipynb", "1")
    (jp_root_dir / "out").symlink_to(outside)
    (jp_root_dir / "link.ipynb").symlink_to(jp_root_dir.parent / "outside.ipynb")
    (jp_root_dir / "loop").symlink_to("loop")
    os.mkfifo(jp_root_dir / "pipe.ipynb")
    before = tree(exchange, jp_root_dir, outside)
    for path in ESCAPES:
        for body in (
            {"notebook": path},
            {"notebook": path, "content": v4.new_notebook()},
            {"notebook": "train.ipynb", "inputs": [path]},
            {"notebook": "train.ipynb", "output": path},
        ):
            status, error = await refusal(post(jp_fetch, "jobs", body=body))
            assert status == 400 and error["code"] in ("bad_input", "bad_notebook"), body
        if path.isascii():  # what no text can be is refused before it is looked at
            found = json.loads((await post(jp_fetch, "preflight", body={"notebook": path})).body)
        else:
            _, found = await refusal(post(jp_fetch, "preflight", body={"notebook": path}))
            found = {"problems": [{"blocking": found["code"] == "bad_input"}]}
        assert any(problem["blocking"] for problem in found["problems"])
    for path in NO_NOTEBOOKS:
        status, _ = await refusal(post(jp_fetch, "jobs", body={"notebook": path}))
        assert status == 400, path
    assert tree(exchange, jp_root_dir, outside) == before


NO_OBJECTS = [
    b"", b"[]", b'"text"', b"null", b"{", b"\xff\xfe", b"NaN", b'{"notebook": NaN}', b"[" * 100_000,
    b'{"a":' * 100_000,
]  # fmt: skip


async def test_what_is_no_json_object(
    url: str, jp_serverapp: ServerApp, exchange: Path, jp_root_dir: Path
) -> None:
    token = {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
    before = tree(exchange, jp_root_dir)
    for route in ("jobs", "preflight", "jobs/train-aaaaaaaa/rerun"):
        for body in NO_OBJECTS:
            answer = await ask(f"{url}jupyter-to-job/api/{route}", "POST", token, body)
            assert answer.code in (400, 404), (route, body[:20], answer.body[:200])
            openapi.validate("Failure", json.loads(answer.body))
    assert tree(exchange, jp_root_dir) == before


WRONG: list[dict[str, Any]] = [
    {"notebook": 1}, {"notebook": None}, {"notebook": ["train.ipynb"]}, {"flavor": 1},
    {"flavor": "huge"}, {"flavor": "../small"}, {"flavor": ""},
    {"device": "t5"}, {"device": ""}, {"device": {}},
    {"parameters": []}, {"parameters": {"": 1}}, {"parameters": {"a b": 1}},
    {"inputs": "helpers.py"}, {"inputs": [1]}, {"inputs": ["missing.py"]},
    {"inputs": [{"path": "a"}]}, {"isolated": "yes"}, {"env": {"A": 1}}, {"env": {"A=B": ""}},
    {"max_runtime": -1}, {"max_runtime": "soon"}, {"max_runtime": 1.5}, {"output": 1},
    {"name": 1}, {"priority": 101}, {"priority": 1.5}, {"priority": True}, {"packages": 1},
    {"surprise": 1}, {"expected_sha256": "xyz"}, {"expected_sha256": "0" * 64}, {"content": []},
    {"content": {"cells": 1}}, {"owner": "root"}, {"flavor_spec": {"cpu": 100}}, {"cpu": 100},
    {"memory_limit": 1}, {"cwd": "/"},
]  # fmt: skip


KEYS = ["a b", "", "x" * 201, "a/b", "\u00e9"]
QUERIES = [
    ("limit", "0"), ("limit", "501"), ("limit", "x"), ("limit", "1_0"), ("limit", "9" * 5000),
    ("state", "stopped"), ("cursor", ""), ("cursor", "c" * 201),
]  # fmt: skip


async def test_wrong_fields_keys_and_queries(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "1")
    good = {"notebook": "train.ipynb"}
    before = tree(exchange, jp_root_dir)
    for field in WRONG:
        asked = post(jp_fetch, "jobs", body={**good, **field}, **{"Idempotency-Key": "k"})
        status, error = await refusal(asked)
        assert 400 <= status < 500 and error["message"], field
    for key in KEYS:
        headers = {"Idempotency-Key": key}
        status, error = await refusal(post(jp_fetch, "jobs", body=good, **headers))
        assert (status, error["code"]) == (400, "bad_input"), key
    for name, value in QUERIES:
        status, error = await refusal(jp_fetch(*API, "jobs", params={name: value}))
        assert (status, error["code"]) == (400, "bad_input"), (name, value)
    assert tree(exchange, jp_root_dir) == before


async def test_a_limit_that_was_raised_by_hand(jp_fetch: Fetch, jp_root_dir: Path) -> None:
    """The catalog's limit counts, whatever the request says."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    flavors = json.loads((await jp_fetch(*API, "flavors")).body)["flavors"]
    body = {"notebook": "train.ipynb", "flavor": "small", "max_runtime": 10**7}
    answered = json.loads((await post(jp_fetch, "jobs", body=body)).body)
    assert answered["max_runtime"] == flavors["small"]["max_runtime"]
    name = answered["name"]
    await ended(jp_fetch, name)
    again = await post(jp_fetch, "jobs", name, "rerun", body={"max_runtime": "100d"})
    assert json.loads(again.body)["max_runtime"] == flavors["small"]["max_runtime"]
    await ended(jp_fetch, json.loads(again.body)["name"])


async def test_bodies_that_are_too_large(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, job: str
) -> None:
    before = tree(exchange, jp_root_dir)
    large = {"parameters": {"a": "x" * (2 << 20)}}
    status, error = await refusal(post(jp_fetch, "jobs", job, "rerun", body=large))
    assert (status, error["code"]) == (413, "too_large")
    status, error = await refusal(post(jp_fetch, "jobs", body={"notebook": "train.ipynb", **large}))
    assert status == 400 and "1 MiB" in error["message"]
    for route in ("cancel", "deliver"):
        status, error = await refusal(post(jp_fetch, "jobs", job, route, body=large))
        assert status == 413
    assert tree(exchange, jp_root_dir) == before


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_submission_that_is_too_large(
    chunked: bool,
    jp_serverapp: ServerApp,
    jp_http_port: int,
    http_server_client: Any,
    exchange: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever sends too much reads so, whether its length was declared or not."""
    monkeypatch.setattr("jupyter_to_job.server.handlers.MAX_SUBMISSION", 1 << 20)
    reader, writer = await asyncio.open_connection("127.0.0.1", jp_http_port)
    piece = b"x" * (3 << 20)
    head = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(piece)}"
    frame = (f"{len(piece):x}\r\n".encode(), b"\r\n0\r\n\r\n") if chunked else (b"", b"")
    writer.write(
        f"POST {jp_serverapp.base_url}jupyter-to-job/api/jobs HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: token {jp_serverapp.identity_provider.token}\r\n"
        f"Connection: close\r\n{head}\r\n\r\n".encode()
        + piece.join(frame)
    )
    status, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n")
    assert status.split()[1] == b"413", status
    assert json.loads(body.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"
    writer.close()


async def test_a_large_body_that_is_no_json(jp_fetch: Fetch, exchange: Path) -> None:
    for body in (b"{" * (2 << 20), b'"' + b"x" * (2 << 20) + b'"'):
        asked = jp_fetch(*API, "jobs", method="POST", body=body)
        status, error = await refusal(asked)
        assert (status, error["code"]) == (400, "bad_input")


def test_every_operation_is_walked() -> None:
    """What the walks above leave out would be left open: `operations` finds all of the file's."""
    text = openapi.FILE.read_text()
    assert len(re.findall(r"^      operationId: ", text, re.M)) == len(OPERATIONS)
    assert v4.nbformat == 4
