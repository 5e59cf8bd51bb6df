"""Requests at random, made from docs/openapi.yaml: no 500, and what is refused writes nothing.

CI sends a share of them; `JUPYTER_TO_JOB_FUZZ=10000 pytest tests/server/test_fuzz.py` sends all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from jupyter_server.serverapp import ServerApp
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.core.result import Ok

from . import openapi
from .test_routes import write_notebook
from .trees import tree

REQUESTS = int(os.environ.get("JUPYTER_TO_JOB_FUZZ", "300"))
_NAMES = st.sampled_from(["train-aaaaaaaa", "..", "train", "é", "a/b"])


@pytest.fixture(autouse=True)
def memory(exchange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs no code: what is accepted by chance has ended when the answer comes."""
    monkeypatch.setenv("JUPYTER_TO_JOB_BACKEND", "memory")


class Prober:
    """Sends cases, and holds each answer to the file and to the folders."""

    def __init__(self, base: str, token: str, folders: tuple[Path, ...]) -> None:
        self._base = base
        self._headers = {"Authorization": f"token {token}"}
        self._folders = folders
        self._before = tree(*folders)
        self._operations = {str(o): o for o in openapi.operations()}
        self.statuses: dict[int, int] = {}

    @property
    def sent(self) -> int:
        """How many requests were answered."""
        return sum(self.statuses.values())

    def __call__(self, case: Case[Any]) -> None:
        operation = self._operations[f"{case.method.upper()} {case.path.removeprefix('/')}"]
        answer = case.call(base_url=self._base, headers=self._headers, timeout=60)
        self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
        shown = case.as_curl_command()[:2000]
        assert answer.status_code < 500, (shown, answer.content)
        if answer.status_code != 404 or "jupyter-to-job/api/" in (answer.request.url or ""):
            self._check(operation, answer, shown)
        now = tree(*self._folders)
        if answer.status_code >= 400 or operation.method == "GET":
            assert now == self._before, shown
        self._before = now

    def _check(self, operation: openapi.Operation, answer: Any, shown: str) -> None:
        kind = answer.headers.get("content-type", [""])[0]
        try:
            openapi.validate_answer(operation, answer.status_code, answer.content, kind)
        except Exception as error:
            raise AssertionError(f"{shown}: {answer.status_code} {error}") from error


def probe(prober: Prober, jobs: Callable[[], list[str]], count: int) -> None:
    """Send `count` requests and a few, half of them as the file allows, half not."""
    # It would leave the token out of half of them: that is another test's.
    loaded = schemathesis.openapi.from_dict({**openapi.document(), "security": []})
    made = [result.ok() for result in loaded.get_all_operations() if isinstance(result, Ok)]
    assert len(made) == len(openapi.operations())
    turn = 0
    while prober.sent < count:  # some operations have fewer ways to be wrong: others again, then
        turn += 1
        each = 1 + (count - prober.sent) // (2 * len(made))
        for operation in made:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                _send(operation, mode, prober, jobs, each, turn)


def _send(
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    prober: Prober,
    jobs: Callable[[], list[str]],
    count: int,
    turn: int,
) -> None:
    """Send at most `count` requests of one operation: other ones in each turn."""

    @seed(turn)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def one(case: Case[Any], data: st.DataObject) -> None:
        _aim(case, data, jobs())
        prober(case)

    # Where nothing is asked for, nothing can be wrong.
    with contextlib.suppress(Unsatisfiable):
        one()


def _aim(case: Case[Any], data: st.DataObject, jobs: list[str]) -> None:
    """Have some requests meet a job or a notebook that is there: at random none ever would."""
    if "name" in case.path_parameters:
        known = st.sampled_from(jobs) if jobs else _NAMES
        name = data.draw(known | _NAMES | st.just(case.path_parameters["name"]))
        case.path_parameters["name"] = name if name in jobs else quote(str(name), safe="") or "x"
    if isinstance(case.body, dict) and "notebook" in case.body and data.draw(st.booleans()):
        case.body["notebook"] = "train.ipynb"


@pytest.mark.timeout(3600)
async def test_requests_at_random(
    jp_serverapp: ServerApp,
    jp_http_port: int,
    http_server_client: Any,
    jp_root_dir: Path,
    exchange: Path,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    write_notebook(jp_root_dir, "train.ipynb", "print(6 * 7)")
    token = jp_serverapp.identity_provider.token
    base = f"http://127.0.0.1:{jp_http_port}{jp_serverapp.base_url}jupyter-to-job/api"
    prober = Prober(base, token, (exchange, jp_root_dir))

    def jobs() -> list[str]:
        return [path.name for path in exchange.iterdir() if not path.name.startswith(".")][:5]

    await asyncio.to_thread(probe, prober, jobs, REQUESTS)
    record_testsuite_property("statuses", json.dumps(prober.statuses))
    assert prober.sent >= REQUESTS
    assert {200, 400, 404} <= set(prober.statuses)
