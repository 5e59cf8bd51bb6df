"""The agent in a job's pod, with a real gateway, beside a notebook that may be hostile."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout, liveness
from jupyter_to_job.agent import agent as agent_module
from jupyter_to_job.agent.agent import Agent, Stopped
from jupyter_to_job.agent.shared_folder import create_file
from jupyter_to_job.controller.feed.gateway_feed import GatewayFeed
from jupyter_to_job.domain.errors import Damaged
from jupyter_to_job.exchange import FileExchange

from ..gateways import context_of, own_process, serving
from ..ingress import ingress
from ..processes import until
from .agents import JOB, LARGE, LINE, MAX_MEMORY, SEGMENT, SNAPSHOT, Start, record_job, run_in
from .agents import exchange as exchange
from .agents import folder as folder
from .agents import start as start
from .agents import start_process as start_process
from .agents import stop as stop
from .agents import token as token
from .agents import url as url
from .exchanges import OUTCOME


def test_it_sends_what_a_run_left(
    url: str, exchange: FileExchange, folder: Path, start: Start
) -> None:
    agent = start(url)
    agent.fetch()
    assert (folder / JOB / layout.SNAPSHOT).read_bytes() == SNAPSHOT
    assert (folder / JOB / layout.INPUTS / "data/zeros.bin").read_bytes() == bytes(4)
    attempt = run_in(folder)
    made = {"metrics.json": b"{}", "outcome.json": b"mine", "deep/empty.txt": b""}
    made |= {os.fsdecode(b"caf\xe9"): b"a name that is not UTF-8", "a\nb": b"x"}
    for name, data in made.items():
        target = attempt / layout.ARTIFACTS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    agent.send_until_ended()
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)
    assert exchange.read(JOB, SEGMENT) == LINE
    for name, data in list(made.items())[:4]:
        assert exchange.read(JOB, f"attempt-1/artifacts/{name}") == data

    again = start(url)  # its container was restarted: nothing changes
    again.fetch()
    again.send_until_ended()
    assert exchange.read(JOB, SEGMENT) == LINE


@pytest.mark.parametrize(("size", "sent"), [(4, b"seal"), (-1, b"")])
def test_of_a_file_that_a_process_still_writes_it_sends_what_the_outcome_names(
    url: str, exchange: FileExchange, folder: Path, start: Start, size: int, sent: bytes
) -> None:
    """The notebook may have written the outcome, too."""
    agent = start(url)
    agent.fetch()
    attempt = run_in(folder)
    (attempt / layout.ARTIFACTS / "logs").mkdir(parents=True)
    (attempt / layout.ARTIFACTS / "logs" / "train.log").write_bytes(b"sealed, and more")
    named = {"path": "logs/train.log", "size": size, "sha256": "0" * 64}
    (attempt / layout.OUTCOME).write_bytes(documents.encode({**OUTCOME, "artifacts": [named]}))
    agent.send_until_ended()
    assert exchange.read(JOB, "attempt-1/artifacts/logs/train.log") == sent


def test_it_follows_no_link(
    url: str, exchange: FileExchange, folder: Path, tmp_path: Path, start: Start
) -> None:
    agent = start(url)
    agent.fetch()
    attempt = run_in(folder)
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "token").write_text("secret")
    (secrets / "00000002.jsonl").write_text("secret")
    (attempt / layout.ARTIFACTS).symlink_to(secrets)
    (attempt / layout.JOURNAL / "00000002.jsonl").symlink_to(secrets / "token")
    os.mkfifo(attempt / layout.JOURNAL / "00000003.jsonl")
    agent.send_until_ended()
    sent = {p.name for p in exchange.directory(JOB).rglob("*") if p.is_file()}
    assert "token" not in sent
    assert "00000002.jsonl" not in sent
    assert layout.SENT_OUTCOME in sent


def test_a_restarted_agent_writes_nothing_where_the_notebook_runs(
    url: str, folder: Path, tmp_path: Path, start: Start
) -> None:
    start(url).fetch()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (folder / JOB).rename(folder / "moved")
    (folder / JOB).symlink_to(target)
    start(url).fetch()
    assert list(target.iterdir()) == []


def test_files_are_created_through_no_link(folder: Path, tmp_path: Path) -> None:
    """The notebook's container runs while the agent writes."""
    target = tmp_path / "elsewhere"
    target.mkdir()
    (folder / "inputs").symlink_to(target)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        for path in ("inputs/a.csv", "inputs"):
            with pytest.raises(OSError, match="inputs"):
                create_file(descriptor, path)
    finally:
        os.close(descriptor)
    assert list(target.iterdir()) == []


def test_what_a_killed_agent_left_is_removed(url: str, folder: Path, start: Start) -> None:
    (folder / ".draft-killed" / "inputs").mkdir(parents=True)
    start(url).fetch()
    assert [path.name for path in folder.iterdir()] == [JOB]


def test_other_bytes_than_were_submitted_never_run(
    url: str, exchange: FileExchange, folder: Path, start: Start
) -> None:
    (exchange.directory(JOB) / layout.INPUTS / "data/zeros.bin").write_bytes(b"1234")
    with pytest.raises(Damaged, match=r"zeros\.bin"):
        start(url).fetch()
    assert not (folder / JOB).exists()


def test_an_agent_that_may_not_begin_ends_with_its_pod(
    url: str, exchange: FileExchange, folder: Path, start: Start, stop: threading.Event
) -> None:
    exchange.write_once(JOB, layout.CANCEL, {"time": "now", "who": "ada"})
    stop.set()
    with pytest.raises(Stopped):
        start(url).fetch()
    assert not (folder / JOB).exists()


@pytest.mark.parametrize("status", [200, 308, 404])
def test_a_page_of_a_proxy_is_no_answer(url: str, folder: Path, start: Start, status: int) -> None:
    def is_away(request: str, pages: int) -> bool:
        return request.startswith("PUT ") and pages < 2

    with ingress(url, is_away, status) as made:
        start(made.url).fetch()
    assert sum(made.pages.values()) == 2
    assert (folder / JOB).exists()


class _Flaky(BaseHTTPRequestHandler):
    """Serves a job whose snapshot breaks off in the middle, once.

    It closes each connection after its answer, without saying so, as a gateway does with idle ones.
    """

    protocol_version = "HTTP/1.1"
    has_broken = False
    ranges: list[str]

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b'{"length": 1}')

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        request = {"snapshot_sha256": hashlib.sha256(SNAPSHOT).hexdigest(), "inputs": []}
        data = SNAPSHOT if name == layout.SNAPSHOT else json.dumps(request).encode()
        if found := self.headers.get("Range"):
            type(self).ranges.append(found)
            data = data[int(found.removeprefix("bytes=").removesuffix("-")) :]
        is_torn = name == layout.SNAPSHOT and not self.has_broken
        self._answer(data, len(data) // 2 if is_torn else None)
        if is_torn:
            type(self).has_broken = True

    def _answer(self, data: bytes, sent: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:sent])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_broken_transfer_goes_on_where_it_was(
    folder: Path, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    _Flaky.has_broken, _Flaky.ranges = False, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Flaky)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        start(f"http://127.0.0.1:{server.server_port}").fetch()
    finally:
        server.shutdown()
        server.server_close()
    warnings = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1 and "only a part of snapshot.ipynb" in warnings[0]
    assert _Flaky.ranges == [f"bytes={len(SNAPSHOT) // 2}-"]
    assert (folder / JOB / layout.SNAPSHOT).read_bytes() == SNAPSHOT


@pytest.mark.parametrize("is_watched", [True, False])
def test_it_sends_more_often_while_somebody_watches(
    exchange: FileExchange,
    folder: Path,
    start: Start,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    is_watched: bool,
) -> None:
    monkeypatch.setattr(agent_module, "SEND_INTERVAL", 3600.0)
    monkeypatch.setattr(agent_module, "WATCHED_SEND_INTERVAL", 0.01)
    monkeypatch.setattr(GatewayFeed, "is_watched", lambda *_: is_watched)
    looks: list[Agent] = []
    send = Agent._send_journal

    def look(agent: Agent) -> None:
        send(agent)
        looks.append(agent)

    monkeypatch.setattr(Agent, "_send_journal", look)
    with context_of(exchange) as context, serving(context) as url:
        agent = start(url)
        agent.fetch()
        claim = liveness.claim_attempt(folder / JOB, 1)
        with (claim.directory / layout.JOURNAL / "00000001.jsonl").open("ab", 0) as segment:
            segment.write(LINE)
            sending = threading.Thread(target=agent.send_until_ended, daemon=True)
            sending.start()
            until(lambda: looks, "the first look")
            assert exchange.size(JOB, SEGMENT) == len(LINE)
            segment.write(LINE)
            if is_watched:
                until(lambda: exchange.size(JOB, SEGMENT) == 2 * len(LINE), "the second record")
            else:
                assert not stop.wait(0.5)
                assert exchange.size(JOB, SEGMENT) == len(LINE)
        (claim.directory / layout.OUTCOME).write_bytes(documents.encode(OUTCOME))
        claim.release()
        sending.join(30)
    assert not sending.is_alive()
    assert exchange.size(JOB, SEGMENT) == 2 * len(LINE)  # at the end all is sent at once


def test_a_large_input_takes_little_memory(
    tmp_path: Path, folder: Path, start_process: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    exchange = FileExchange(tmp_path / "large")
    record_job(exchange, LARGE)
    with own_process(exchange) as (url, _):
        process = start_process(url)
        until((folder / JOB).exists, "the job's files", bound=300)
        fetched = folder / JOB / layout.INPUTS / "data/zeros.bin"
        assert fetched.stat().st_size == LARGE
        fetched.unlink()  # pytest would keep it
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)
        assert peak is not None
        assert int(peak[1]) << 10 < MAX_MEMORY


def test_its_start_imports_little() -> None:
    """A GPU waits for it: importing httpx alone takes longer than all that it needs."""
    program = "import sys, jupyter_to_job.agent.__main__; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("jupyter_to_job.")}
    assert {name.split(".")[1] for name in ours} == {"agent", "domain", "logs"}
    assert not {"httpx", "asyncio", "pydantic", "tornado", "yaml", "kubernetes"} & set(loaded)
