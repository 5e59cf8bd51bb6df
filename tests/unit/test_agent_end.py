"""How an agent ends, with its run or with its pod, and what it sends last."""

from __future__ import annotations

import errno
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from job_runner.protocol import documents, layout, liveness
from jupyter_to_job.agent import agent as agent_module
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.domain.errors import Damaged, JobsError, NotFound, Refused, Unavailable
from jupyter_to_job.exchange import FileExchange

from ..processes import until
from .agents import JOB, LINE, SEGMENT, Start, run_in
from .agents import exchange as exchange
from .agents import folder as folder
from .agents import start as start
from .agents import start_process as start_process
from .agents import stop as stop
from .agents import token as token
from .agents import url as url
from .exchanges import OUTCOME


def test_it_ends_by_itself_with_the_run(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start_process: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    process = start_process(url)
    until((folder / JOB).exists, "the job's files")
    claim = liveness.claim_attempt(folder / JOB, 1)
    (claim.directory / layout.JOURNAL / "00000001.jsonl").write_bytes(LINE)
    (claim.directory / layout.OUTCOME).write_bytes(documents.encode(OUTCOME))
    until(lambda: exchange.size(JOB, SEGMENT) == len(LINE), "the journal")
    assert process.poll() is None  # the runner lives: the kubelet would start the agent again
    assert exchange.size(JOB, "attempt-1/sent-outcome.json") is None
    claim.release()
    assert process.wait(30) == 0
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)
    assert start_process(url).wait(30) == 0  # the kubelet has started it again all the same


def test_it_goes_on_until_it_is_told_if_the_runner_was_killed(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start_process: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    process = start_process(url)
    until((folder / JOB).exists, "the job's files")
    claim = liveness.claim_attempt(folder / JOB, 1)
    segment = claim.directory / layout.JOURNAL / "00000001.jsonl"
    segment.write_bytes(LINE)
    claim.release()
    until(lambda: exchange.size(JOB, SEGMENT) == len(LINE), "the journal")
    segment.write_bytes(2 * LINE)
    until(lambda: exchange.size(JOB, SEGMENT) == 2 * len(LINE), "the rest")
    segment.write_bytes(3 * LINE)
    process.terminate()
    assert process.wait(30) == 0
    assert exchange.size(JOB, SEGMENT) == 3 * len(LINE)


@pytest.mark.parametrize("error", [Unavailable("Away."), Refused("Who?"), NotFound("None.")])
def test_a_restarted_agent_sends_the_rest_of_a_pod_that_ends(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start: Start,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    error: JobsError,
) -> None:
    """The controller does not answer, or does not know the pod, for a moment."""
    start(url).fetch()
    run_in(folder)
    stop.set()
    put, failures = GatewayConnection.put, [error, error]

    def fail_twice(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return put(*arguments)

    monkeypatch.setattr(GatewayConnection, "put", fail_twice)
    again = start(url)
    again.fetch()
    again.send_until_ended()
    assert failures == [] and exchange.read(JOB, SEGMENT) == LINE
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)


@pytest.mark.parametrize("broken", [(shutil, "disk_usage"), (documents, "read_document")])
def test_a_disk_that_fails_for_a_moment_loses_no_run(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    broken: tuple[Any, str],
) -> None:
    """The gateway answers 500, and no kubelet starts an agent again after its run."""
    agent = start(url)
    agent.fetch()
    run_in(folder)
    act, failures = getattr(*broken), [OSError(errno.EIO, "Input/output error")]

    def fail_once(path: Path) -> Any:
        if failures and path in (exchange.root, exchange.root / JOB / "attempt-1" / layout.RUNNER):
            raise failures.pop()
        return act(path)

    monkeypatch.setattr(*broken, fail_once)
    agent.send_until_ended()
    assert failures == [] and exchange.read(JOB, SEGMENT) == LINE
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)


def write_artifacts(folder: Path, *names: str) -> None:
    """Let a run end with artifacts of these names, a byte each."""
    artifacts = run_in(folder) / layout.ARTIFACTS
    artifacts.mkdir()
    for name in names:
        (artifacts / name).write_bytes(b"x")


@pytest.mark.parametrize("failure", [JobsError("Broken."), Damaged("It cannot be read.")])
def test_an_artifact_that_never_goes_through_does_not_hold_up_the_rest(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start: Start,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    failure: JobsError,
) -> None:
    """The gateway answers, so the time for artifacts goes by."""
    agent = start(url)
    agent.fetch()
    write_artifacts(folder, *map(str, range(20)))
    append, clock = GatewayConnection.append, [0.0]

    def pass_time(seconds: float) -> None:
        clock[0] += seconds

    def fail(gateway: GatewayConnection, path: str, *rest: Any) -> Any:
        if layout.ARTIFACTS in path:
            raise failure
        return append(gateway, path, *rest)

    monkeypatch.setattr(GatewayConnection, "append", fail)
    pretend = SimpleNamespace(monotonic=lambda: clock[0], sleep=pass_time)
    monkeypatch.setattr(agent_module, "time", pretend)
    stop.set()
    agent.send_until_ended()
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)
    assert clock[0] < 150


@pytest.mark.parametrize("is_away", [False, True])
def test_artifacts_have_only_so_much_time(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    is_away: bool,
) -> None:
    """The GPU is held meanwhile. A gateway that is away is waited for, and nothing is lost."""
    agent = start(url)
    agent.fetch()
    write_artifacts(folder, "a", "b")
    append, failures = GatewayConnection.append, [Unavailable("Away.")] * (3 if is_away else 0)
    clock = [0.0]

    def pass_time(seconds: float) -> None:
        clock[0] += seconds

    def slow(gateway: GatewayConnection, path: str, *rest: Any) -> Any:
        if layout.ARTIFACTS in path:
            if failures:
                raise failures.pop()
            pass_time(0.0 if is_away else 0.6)
        return append(gateway, path, *rest)

    monkeypatch.setattr(GatewayConnection, "append", slow)
    monkeypatch.setattr(agent_module, "MAX_ARTIFACTS_TIME", 0.5)
    pretend = SimpleNamespace(monotonic=lambda: clock[0], sleep=pass_time)
    monkeypatch.setattr(agent_module, "time", pretend)
    agent.send_until_ended()
    sent = [exchange.size(JOB, f"attempt-1/artifacts/{name}") for name in ("a", "b")]
    assert sent == [1, 1 if is_away else None]
    assert failures == [] and exchange.read(JOB, SEGMENT) == LINE
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)


def test_too_many_files_are_not_named(
    url: str, exchange: FileExchange, folder: Path, start: Start
) -> None:
    """Of its end nothing else is lost."""
    agent = start(url)
    agent.fetch()
    files = [{"path": "x" * 500, "size": 1, "sha256": "0" * 64}] * 9000
    outcome = {**OUTCOME, "artifacts": files}
    (run_in(folder) / layout.OUTCOME).write_bytes(documents.encode(outcome))
    agent.send_until_ended()
    sent = exchange.read(JOB, "attempt-1/sent-outcome.json")
    assert sent is not None and json.loads(sent)["artifacts"] is None


def test_it_ends_with_its_pod_while_the_gateway_is_away(
    folder: Path, start_process: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    process = start_process("http://127.0.0.1:9")

    def has_handler() -> bool:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = re.search(r"^SigCgt:\s+(\w+)", status, re.M)
        return caught is not None and bool(int(caught[1], 16) & 1 << 14)

    until(has_handler, "the handler of SIGTERM")
    process.terminate()
    assert process.wait(30) == 0
    assert list(folder.iterdir()) == []


def test_it_hears_sigterm_before_it_imports_anything() -> None:
    """The first process of a container ignores a signal that comes before its handler."""
    program = """if True:
        import signal, sys
        install = signal.signal
        signal.signal = lambda *arguments: (print(*sys.modules), install(*arguments))
        import jupyter_to_job.agent.__main__
    """
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("jupyter_to_job.")}
    assert ours == {"jupyter_to_job.agent", "jupyter_to_job.agent.__main__"}
