"""What `POST jobs` refuses every other door refuses, too; and events have a door of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import Authorizer
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import HTTPClientError
from tornado.websocket import websocket_connect

from . import openapi
from .test_doors import ESCAPES, WRONG
from .test_routes import API, post, refusal, write_notebook
from .trees import tree

Fetch = Callable[..., Awaitable[Any]]
OF_RERUNS = frozenset(openapi.schema("Changes")["properties"])
KNOWN_LATER = ("flavor", "device", "expected_sha256", "inputs", "parameters", "env", "content")
"""Fields whose values may be of the right type, and wrong all the same: preflight says so."""


@pytest.fixture(autouse=True)
def memory(exchange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs no code: jobs have ended when they are answered."""
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "memory")


@pytest.fixture
def outside(jp_root_dir: Path) -> Path:
    """A notebook that the server may run, and what lies outside of its root."""
    write_notebook(jp_root_dir, "train.ipynb", "1")
    folder = jp_root_dir.parent / "outside"
    folder.mkdir()
    write_notebook(folder, "a.ipynb", "1")
    write_notebook(jp_root_dir.parent, "outside.ipynb", "1")
    (jp_root_dir / "out").symlink_to(folder)
    (jp_root_dir / "link.ipynb").symlink_to(jp_root_dir.parent / "outside.ipynb")
    (jp_root_dir / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize("field", WRONG, ids=json.dumps)
async def test_a_preflight(
    field: dict[str, Any], jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, outside: Path
) -> None:
    before = tree(exchange, jp_root_dir)
    asked = post(jp_fetch, "preflight", body={"notebook": "train.ipynb", **field})
    try:
        found = json.loads((await asked).body)
    except HTTPClientError as error:
        assert error.code == 400
    else:
        assert set(field) <= set(KNOWN_LATER)
        assert any(problem["blocking"] for problem in found["problems"]), found
    assert tree(exchange, jp_root_dir) == before


async def test_a_rerun(jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, outside: Path) -> None:
    first = await post(jp_fetch, "jobs", body={"notebook": "train.ipynb"})
    name = json.loads(first.body)["name"]
    wrong = [field for field in WRONG if set(field) <= OF_RERUNS or "surprise" in field]
    wrong += [{"output": path} for path in ESCAPES] + [{"notebook": "train.ipynb"}, {"inputs": []}]
    assert len(wrong) > 20
    before = tree(exchange, jp_root_dir, outside)
    for field in wrong:
        status, error = await refusal(post(jp_fetch, "jobs", name, "rerun", body=field))
        assert status == 400 and error["message"], field
    assert tree(exchange, jp_root_dir, outside) == before


async def test_paths_of_a_preflight(
    jp_fetch: Fetch, jp_root_dir: Path, exchange: Path, outside: Path
) -> None:
    before = tree(exchange, jp_root_dir, outside)
    for path in ESCAPES:
        for field in ({"inputs": [path]}, {"output": path}):
            asked = post(jp_fetch, "preflight", body={"notebook": "train.ipynb", **field})
            try:
                found = json.loads((await asked).body)
            except HTTPClientError as error:
                assert error.code == 400
            else:
                assert any(p["blocking"] for p in found["problems"]), (field, found)
                assert not found["inputs"], field
    assert tree(exchange, jp_root_dir, outside) == before


async def test_keys_of_submissions(
    http_server_client: Any, jp_serverapp: ServerApp, exchange: Path, jp_root_dir: Path
) -> None:
    """A key is no path, however it is written."""
    before = tree(exchange, jp_root_dir)
    base = f"{jp_serverapp.base_url}jupyter-to-job/api/submissions/"
    token = {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
    for key in ("a%2fb", "..%2f..%2fetc", "%00", "%ff", "a%20b", "x" * 201, "%c3%a9", ""):
        with pytest.raises(HTTPClientError) as caught:
            await http_server_client.fetch(base + key, method="DELETE", headers=token)
        assert caught.value.code in (400, 404), key
    for key in ("..", "%2e%2e"):  # of a key that is none of ours nothing is withdrawn
        asked = http_server_client.fetch(base + key, method="DELETE", headers=token)
        assert (await asked).code == 204
    assert tree(exchange, jp_root_dir) == before


@pytest.mark.parametrize("length", ["-1", "x", str(1 << 40), "5,6"])
async def test_a_length_that_is_none(
    length: str, jp_serverapp: ServerApp, jp_http_port: int, http_server_client: Any
) -> None:
    """Nobody waits for a body that may never come: the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", jp_http_port)
    token = jp_serverapp.identity_provider.token
    writer.write(
        f"POST {jp_serverapp.base_url}jupyter-to-job/api/jobs HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: token {token}\r\nContent-Length: {length}\r\n\r\n".encode()
    )
    answer = await asyncio.wait_for(reader.read(), 20)
    assert answer == b"" or answer.split(b" ", 2)[1] in (b"400", b"413"), answer
    writer.close()


class Deaf(Authorizer):
    """Somebody who may do anything but listen."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        return resource != "events"


async def test_events(
    jp_serverapp: ServerApp, jp_http_port: int, http_server_client: Any, jp_fetch: Fetch
) -> None:
    """A stranger hears nothing, nor does who may not listen; and is told so beforehand."""
    url = f"ws://127.0.0.1:{jp_http_port}{jp_serverapp.base_url}api/events/subscribe"
    token = f"?token={jp_serverapp.identity_provider.token}"
    with pytest.raises(HTTPClientError) as caught:
        await websocket_connect(url)
    assert caught.value.code in (302, 403)  # or to where one logs in
    (await websocket_connect(url + token)).close()

    jp_serverapp.web_app.settings["authorizer"] = Deaf()
    with pytest.raises(HTTPClientError) as caught:
        await websocket_connect(url + token)
    assert caught.value.code == 403
    assert json.loads((await jp_fetch(*API, "health")).body)["events"] is False
