"""A journal that a notebook wrote itself, to harm the controller: it harms its own result only."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from job_runner.protocol import documents, layout
from job_runner.protocol.journal import journal
from job_runner.protocol.outcome import Outcome, read_outcome
from jupyter_to_job.controller.reconciling import folds
from jupyter_to_job.controller.reconciling.folds import Folds
from jupyter_to_job.controller.reconciling.next_step import EndAttempt
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service.reading.journal_reader import MAX_LOGGED_RECORD

from ..gateways import own_process
from . import exchanges
from .test_intake import forget_peak, peak_memory

JOB = "train-abcdefgh"
MIB = 1 << 20
MAX_LINE = 64 * MIB


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    exchanges.add(found, JOB, owner="ada")
    attempt = found.directory(JOB) / "attempt-1"
    (attempt / layout.JOURNAL).mkdir(parents=True)
    documents.write_document(attempt / layout.RUNNER, {"pod": "pod-1"})
    return found


def segment(exchange: FileExchange, number: int) -> Path:
    folder = exchange.directory(JOB) / "attempt-1" / layout.JOURNAL
    return folder / f"{number:08d}.jsonl"


def stream(text: str) -> bytes:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return journal.encode({"t": 2.0, "k": "output", "i": 0, "output": output})


def write_endless_line(exchange: FileExchange, size: int) -> None:
    """Write a line without an end, as a hole in its file, between two records."""
    segment(exchange, 1).write_bytes(stream("before"))
    with segment(exchange, 2).open("wb") as file:
        file.truncate(size)
    segment(exchange, 3).write_bytes(stream("after"))


FINISH = """
import sys
from pathlib import Path
from job_runner.cli import main
status = main(sys.argv[1:])
print(Path("/proc/self/status").read_text())
sys.exit(status)
"""
"""`job_runner` that prints its peak of memory: what wait4 says begins with the parent's."""


def finish(exchange: FileExchange, *options: str) -> tuple[int, int]:
    """Run `job_runner finish`; return its exit status, and the most memory that it had."""
    arguments = ["finish", str(exchange.directory(JOB)), *options]
    command = [sys.executable, "-c", FINISH, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, int(done.stdout.split("VmHWM:")[1].split()[0]) << 10


def ended(exchange: FileExchange) -> tuple[Outcome, str]:
    attempt = exchange.directory(JOB) / "attempt-1"
    outcome = read_outcome(attempt)
    assert outcome is not None
    return outcome, (attempt / layout.RESULT).read_text()


def test_a_line_of_300_mb_is_never_in_memory(exchange: FileExchange) -> None:
    write_endless_line(exchange, 300 * MIB)
    status, memory = finish(exchange, "--max-line", str(MAX_LINE))
    assert status == 0
    assert memory < 200 * MIB
    _, result = ended(exchange)
    assert "before" in result and "after" in result
    assert "[314572800 bytes of the journal are damaged here]" in result


def test_a_record_that_is_too_long_is_said(exchange: FileExchange) -> None:
    segment(exchange, 1).write_bytes(stream("before") + stream("x" * 2 * MIB) + stream("after"))
    assert finish(exchange, "--max-line", str(MIB))[0] == 0
    _, result = ended(exchange)
    assert "before" in result and "after" in result
    assert "a record of 2 MiB is too large to be shown" in result


def test_records_of_a_million_cells_make_no_million_cells(exchange: FileExchange) -> None:
    with segment(exchange, 1).open("wb") as file:
        for index in range(0, 999_000, 99):
            file.write(journal.encode({"t": 1.0, "k": "cell_start", "i": index}))
    status, memory = finish(exchange)
    assert status == 0
    assert memory < 200 * MIB
    _, result = ended(exchange)
    assert result.count('"cell_type"') < 1100


METRIC = {
    "output_type": "display_data",
    "data": {"application/papermill.record+json": {"loss": 1}},
    "metadata": {},
}


@pytest.mark.parametrize(
    ("record", "is_damage"),
    [
        ({"k": "cell_end", "i": 0, "ok": True}, False),  # of no execution count
        ({"k": "output", "i": True, "output": METRIC}, True),
        ({"k": "prepared", "cells_total": 10**25, "notebook": {}}, True),
    ],
)
def test_a_record_of_an_odd_shape_leaves_an_outcome(
    exchange: FileExchange, record: dict[str, Any], is_damage: bool
) -> None:
    segment(exchange, 1).write_bytes(stream("before") + journal.encode(record) + stream("after"))
    assert finish(exchange)[0] == 0
    outcome, result = ended(exchange)
    assert (outcome.reason, outcome.metrics, outcome.cells["total"]) == ("Lost", {}, 0)
    assert "before" in result and "after" in result
    assert ("bytes of the journal are damaged here" in result) is is_damage


def run_folds(exchange: FileExchange, reason: str = "Lost", message: str = "It was lost.") -> None:
    """Have a controller finish the job."""

    async def run() -> None:
        ended = asyncio.Event()
        runs = Folds(exchange, MAX_LINE, lambda _: ended.set())
        runs.start(JOB, EndAttempt(1, reason, message))
        runs.start(JOB, EndAttempt(1, reason, message))  # it is under way
        await asyncio.wait_for(ended.wait(), 120)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "shown"), [("bad \0", "bad ?"), ("bad \ud800", "bad ?"), ("-bad", "-bad")]
)
def test_a_termination_message_of_any_text(exchange: FileExchange, said: str, shown: str) -> None:
    """The notebook can write it, and it becomes an argument of a process."""
    segment(exchange, 1).write_bytes(stream("before"))
    run_folds(exchange, said, said)
    outcome, _ = ended(exchange)
    assert (outcome.reason, outcome.message) == (shown, shown)


def test_a_host_that_starts_no_process_is_tried_again(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, refusals = asyncio.create_subprocess_exec, [BlockingIOError("no more processes")]

    async def refuse_once(*command: str, **options: Any) -> asyncio.subprocess.Process:
        if refusals:
            raise refusals.pop()
        return await start(*command, **options)

    segment(exchange, 1).write_bytes(stream("before"))
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse_once)
    monkeypatch.setattr(folds, "MIN_RETRY_DELAY", 0.1)
    run_folds(exchange)
    assert ended(exchange)[0].message == "It was lost."


@pytest.mark.parametrize(
    ("kills", "is_cut"),
    [([None, -9], False), ([-9] * 4, False), ([-9] * 5, True), ([None, None], True)],
)
def test_a_fold_that_is_killed_is_never_given_up(
    exchange: FileExchange,
    monkeypatch: pytest.MonkeyPatch,
    kills: list[int | None],
    is_cut: bool,
) -> None:
    """The kernel ends folds first where the container has no memory, which passes."""
    run, left, tries = folds._run, list(kills), []

    async def be_killed(directory: Path, options: list[str]) -> int | None:
        tries.append(options)
        return left.pop() if left else await run(directory, options)

    segment(exchange, 1).write_bytes(stream("before"))
    monkeypatch.setattr(folds, "_run", be_killed)
    monkeypatch.setattr(folds, "MAX_FAILURES", 2)
    monkeypatch.setattr(folds, "MIN_RETRY_DELAY", 0.1)
    run_folds(exchange)
    outcome, result = ended(exchange)
    assert (outcome.reason, left) == ("Lost", [])
    assert "before" in result
    assert not any("--max-journal" in options for options in tries[:-1])
    assert ("--max-journal" in tries[-1]) is is_cut


def test_a_journal_that_fits_in_no_memory_is_folded_in_part(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folds, "MAX_MEMORY", 240 * MIB)
    monkeypatch.setattr(folds, "MIN_RETRY_DELAY", 0.1)
    text = "x" * 8 * MIB
    with segment(exchange, 1).open("wb") as file:
        file.write(stream("before"))
        for number in range(30):
            state = {"_model_name": "HTMLModel", "value": text}
            record = {"t": 1.0, "k": "widget", "id": str(number), "state": state}
            file.write(journal.encode(record))
    run_folds(exchange)
    outcome, result = ended(exchange)
    assert outcome.reason == "Lost"
    assert outcome.message == "It was lost. Only 16 MiB of its journal could be put together."
    assert "before" in result
    assert "only 16 MiB of it could be put together" in result


def test_what_can_never_be_folded_ends_without_a_result(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folds, "MAX_MEMORY", 240 * MIB)
    monkeypatch.setattr(folds, "MAX_FAILURES", 2)
    monkeypatch.setattr(folds, "MIN_RETRY_DELAY", 0.1)
    segment(exchange, 1).write_bytes(stream("before"))
    with (exchange.directory(JOB) / layout.SNAPSHOT).open("wb") as snapshot:
        snapshot.truncate(300 * MIB)  # stands for any fault that each try meets
    run_folds(exchange)
    attempt = exchange.directory(JOB) / "attempt-1"
    outcome = read_outcome(attempt)
    assert outcome is not None and outcome.result_sha256 is None
    assert (outcome.state, outcome.reason) == ("failed", "BackendError")
    assert outcome.message is not None and "could not be put together" in outcome.message
    assert b"before" in segment(exchange, 1).read_bytes()
    assert not (attempt / layout.RESULT).exists()


def send_outcome(exchange: FileExchange) -> None:
    sent = Outcome(
        "succeeded", None, None, 0, {"done": 1, "total": 1}, None, exchanges.ENDED, {}, "0" * 64
    )
    attempt = exchange.directory(JOB) / "attempt-1"
    documents.write_document(attempt / layout.SENT_OUTCOME, vars(sent))


def test_an_outcome_that_was_sent_is_the_end(exchange: FileExchange) -> None:
    segment(exchange, 1).write_bytes(stream("all is well"))
    send_outcome(exchange)
    run_folds(exchange)
    outcome, result = ended(exchange)
    cells = {"done": 1, "total": 1}
    assert (outcome.state, outcome.message, outcome.cells) == ("succeeded", None, cells)
    assert "all is well" in result


def test_a_fold_that_was_killed_leaves_no_draft(exchange: FileExchange) -> None:
    """Folds are, for their memory or time; each draft may be as large as a result."""
    segment(exchange, 1).write_bytes(stream("all is well"))
    send_outcome(exchange)
    attempt = exchange.directory(JOB) / "attempt-1"
    die = "import os, signal; os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)"
    command = [sys.executable, "-c", die + FINISH, "finish", str(exchange.directory(JOB))]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert "all is well" in next(attempt.glob(".*.tmp")).read_text()
    assert finish(exchange)[0] == 0
    assert "all is well" in ended(exchange)[1]
    assert list(attempt.glob(".*.tmp")) == []


def test_a_gateway_reads_it_in_little_memory(exchange: FileExchange) -> None:
    write_endless_line(exchange, 100 * MIB)
    with segment(exchange, 4).open("wb") as file:
        file.truncate(100 * MIB)  # and one at the end, which may still grow
    with own_process(exchange) as (url, pid):
        headers = {"Authorization": "Bearer ada"}
        with httpx.Client(base_url=f"{url}/api/", headers=headers, timeout=60) as client:
            assert client.get("jobs").is_success
            before = forget_peak(pid)
            assert client.get(f"jobs/{JOB}").json()["name"] == JOB
            for path in ("journal", "logs"):
                for offset in (0, -150 * MIB):
                    answer = client.get(f"jobs/{JOB}/{path}", params={"offset": offset})
                    assert answer.is_success, answer.text
            assert client.get(f"jobs/{JOB}/notebook").status_code == 413
            assert client.get("health").is_success
            # A record whose text a log shows may be in memory, twice while it is read.
            assert peak_memory(pid) - before < 2 * MAX_LOGGED_RECORD + 20 * MIB
