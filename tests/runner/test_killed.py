"""Runs that are ended from outside, with real signals; and `finish`, which picks up the pieces."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from job_runner.kernel.cleanup import end_session
from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.journal.journal import JournalWriter

from .jobs import BOUND, Job, banner, names, notebook, stream, until

GRACE = 10
"""Seconds between SIGTERM and SIGKILL: all that a runner has to save everything."""
LONG = notebook("print('first')", "import time\nprint('kept')\ntime.sleep(100)", "print('no')")
FLOOD = notebook("print('kept')", "i = 0\nwhile True:\n    i += 1\n    print(i, flush=True)")
BACKGROUND = notebook(
    "import subprocess, time\nchild = subprocess.Popen(['sleep', '100'])\nprint('kept', child.pid)",
    "time.sleep(100)",
)


def kept(job: Job) -> Callable[[], bool]:
    return lambda: job.attempt().exists() and "kept" in job.printed()


HIDDEN = """\
import os, subprocess, time
child = subprocess.Popen(['sleep', '100'], env={}, preexec_fn=os.setpgrp)
other = subprocess.Popen(['sleep', '100'], preexec_fn=os.setpgrp)
print('kept', child.pid)
"""
"""A process without the kernel's variables, as one is that wrote a title over them; and another."""


def gone(pid: int) -> Callable[[], bool]:
    def check() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return check


def stop(process: Any, number: int = signal.SIGTERM) -> float:
    """Send a signal and return the seconds until the process was gone."""
    began = time.monotonic()
    process.send_signal(number)
    process.wait(timeout=30)
    return time.monotonic() - began


def test_told_to_stop(job: Callable[..., Job]) -> None:
    stopped = job(LONG)
    process = stopped.start()
    until(kept(stopped), "output")
    assert stop(process) < GRACE
    assert process.returncode == 143
    outcome = stopped.outcome()
    assert (outcome.state, outcome.reason, outcome.exit_code) == ("failed", "Terminated", 143)
    assert outcome.cells == {"done": 1, "total": 3}
    result = stopped.result()
    assert [stream(c) for c in result.cells if c.cell_type == "code"] == ["first\n", "kept\n", ""]
    assert "Terminated" in banner(result)[0]
    assert result.cells[3].metadata.papermill.status == "failed"
    assert result.cells[4].metadata.papermill.status == "pending"
    assert gone(stopped.kernel_pid())()


def test_the_kernel_is_killed(job: Callable[..., Job]) -> None:
    orphaned = job(LONG)
    process = orphaned.start()
    until(kept(orphaned), "output")
    os.kill(next(r["pid"] for r in orphaned.records() if r["k"] == "kernel"), signal.SIGKILL)
    assert process.wait(timeout=BOUND) == 4
    assert orphaned.outcome().reason == "KernelDied"
    assert orphaned.printed().split() == ["first", "kept"]


def test_told_to_stop_in_a_flood_of_output(job: Callable[..., Job]) -> None:
    flooded = job(FLOOD)
    process = flooded.start()
    until(lambda: kept(flooded)() and len(flooded.printed()) > 1000, "a flood")
    assert stop(process) < GRACE
    assert (process.returncode, flooded.outcome().reason) == (143, "Terminated")
    text = flooded.printed()
    lines = text[: text.rfind("\n")].split()  # the last one may be cut: so it left the kernel
    assert lines[1:] == [str(i) for i in range(1, len(lines))]


def test_told_to_stop_before_the_first_cell(job: Callable[..., Job]) -> None:
    early = job(LONG)
    process = early.start()
    until(early.attempt().exists, "an attempt")
    stop(process)
    assert process.returncode == 143
    assert early.outcome().reason == "Terminated"
    assert "Terminated" in banner(early.result())[0]


def test_told_to_stop_as_the_first_process_of_a_container(job: Callable[..., Job]) -> None:
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("needs root and unshare to be PID 1 of a namespace")
    orphan = "import subprocess\nsubprocess.run(['sh', '-c', 'sleep 0.1 & sleep 0']);print('kept')"
    first = job(notebook("import os, time", orphan, "time.sleep(100)"))
    inside = (unshare, "--fork", "--pid", "--mount-proc", "--kill-child")
    outer = first.start(before=inside)
    until(kept(first), "output")
    runner = psutil.Process(outer.pid).children()[0]
    assert first.kernel_pid() < 1000  # a number of the namespace: the runner is its PID 1

    def orphans() -> list[str]:
        return names(runner.children()[1:])

    until(lambda: not orphans(), "orphans are reaped")
    began = time.monotonic()
    runner.send_signal(signal.SIGTERM)
    outer.wait(timeout=30)
    assert time.monotonic() - began < GRACE
    assert outer.returncode == 143
    assert first.outcome().reason == "Terminated"
    assert "kept\n" in first.printed()


def test_killed_and_finished(job: Callable[..., Job]) -> None:
    killed = job(BACKGROUND)
    process = killed.start()
    until(kept(killed), "output")
    assert killed.finish() == 75
    assert liveness.is_alive(killed.attempt())
    process.kill()
    process.wait(timeout=BOUND)
    until(gone(killed.kernel_pid()), "the kernel dies with its runner")
    assert not liveness.is_alive(killed.attempt())
    assert not (killed.attempt() / layout.OUTCOME).exists()
    child = int(killed.printed().split()[-1])

    assert killed.finish() == 0
    outcome = killed.outcome()
    assert (outcome.state, outcome.reason, outcome.exit_code) == ("failed", "Lost", None)
    assert outcome.cells == {"done": 1, "total": 2}
    assert outcome.started is not None and outcome.started < outcome.finished
    result = killed.result()
    assert stream(result.cells[1]).startswith("kept")
    assert "Lost" in banner(result)[0]
    assert result.cells[3].metadata.papermill.status == "failed"
    assert not Path(killed.records()[0]["sockets"]).exists()
    until(gone(child), "what the notebook put into the background")

    before = {p: p.stat().st_mtime_ns for p in killed.attempt().rglob("*")}
    assert killed.finish("--reason", "Evicted") == 0
    assert {p: p.stat().st_mtime_ns for p in killed.attempt().rglob("*")} == before


def test_what_hides_its_variables_ends_with_a_killed_run(job: Callable[..., Job]) -> None:
    killed = job(notebook(HIDDEN, "time.sleep(100)"))
    process = killed.start()
    until(kept(killed), "output")
    child = int(killed.printed().split()[1])
    process.kill()
    process.wait(timeout=BOUND)
    until(gone(killed.kernel_pid()), "the kernel dies with its runner")
    assert not gone(child)()
    assert killed.finish() == 0
    until(gone(child), "what the notebook put into the background")


def test_what_hides_its_variables_ends_with_a_stopped_run(job: Callable[..., Job]) -> None:
    stopped = job(notebook(HIDDEN, "time.sleep(100)"))
    process = stopped.start()
    until(kept(stopped), "output")
    stop(process)
    until(gone(int(stopped.printed().split()[1])), "what the notebook put into the background")


def test_another_session_of_the_number_is_left_alone() -> None:
    script = "sleep 100 & echo $!; wait"
    stranger = subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert stranger.stdout is not None
        child = int(stranger.stdout.readline())
        end_session(stranger.pid, "mark")
        assert not gone(child)() and stranger.poll() is None
        end_session(stranger.pid, "mark", is_held=True)
        assert stranger.wait(timeout=BOUND) == -signal.SIGKILL
        until(gone(child), "the child")
    finally:
        stranger.kill()
        stranger.wait()


def test_killed_with_its_whole_session(job: Callable[..., Job]) -> None:
    """What the dispatcher does when a runner does not heed SIGTERM."""
    killed = job(LONG)
    process = killed.start()
    until(kept(killed), "output")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=BOUND)
    until(gone(killed.kernel_pid()), "the kernel dies with its runner")


def test_finish_is_told_why(job: Callable[..., Job]) -> None:
    killed = job(LONG)
    liveness.claim_attempt(killed.directory, 1).release()
    assert killed.finish("--reason", "OutOfMemory", "--message", "The pod was killed.") == 0
    outcome = killed.outcome()
    assert (outcome.reason, outcome.message) == ("OutOfMemory", "The pod was killed.")


def test_what_the_runner_wrote_itself_counts_more(job: Callable[..., Job]) -> None:
    """Killed between its last record and its outcome: `finish` comes to the runner's own end."""
    done = job(notebook("print('kept')"))
    assert done.run() == 0
    before = (done.attempt() / layout.RESULT).read_bytes()
    (done.attempt() / layout.OUTCOME).unlink()
    (done.attempt() / layout.RESULT).unlink()
    assert done.finish("--reason", "Lost") == 0
    assert (done.outcome().state, done.outcome().exit_code) == ("succeeded", 0)
    assert (done.attempt() / layout.RESULT).read_bytes() == before


def test_a_torn_record_is_shown(job: Callable[..., Job]) -> None:
    torn = job(LONG)
    claim = liveness.claim_attempt(torn.directory, 1)
    writer = JournalWriter(claim.directory / layout.JOURNAL)
    writer.append({"k": "start", "t": 0.0})
    writer.close()
    with (claim.directory / layout.JOURNAL / "00000001.jsonl").open("ab") as segment:
        segment.write(b"0123abcd {torn")
    claim.release()
    assert torn.finish() == 0
    assert [r["k"] for r in torn.records()] == ["start", "damaged", "end"]
    assert "damaged" in "".join(stream(c) for c in torn.result().cells if c.cell_type == "code")


def test_nothing_ever_started(job: Callable[..., Job]) -> None:
    never = job(LONG)
    assert never.finish("--reason", "RunnerMissing", "--message", "No such interpreter.") == 0
    outcome = never.outcome()
    assert (outcome.state, outcome.reason) == ("failed", "RunnerMissing")
    assert outcome.started is None and outcome.result_sha256 is None
    assert not (never.attempt() / layout.RESULT).exists()
    assert never.run("--attempt", "1") == 75


def test_one_number_is_one_runner(job: Callable[..., Job]) -> None:
    """The same attempt started eight times at once runs once."""
    contested = job(notebook("print('once')"))
    processes = [contested.start("--attempt", "1") for _ in range(8)]
    for process in processes:
        process.wait(timeout=60)
    assert sorted(p.returncode for p in processes) == [0] + [75] * 7
    assert contested.printed() == "once\n"
    assert [p.name for p in contested.directory.iterdir() if p.name.startswith(".")] == []


def test_a_runner_is_known_by_its_command_line(job: Callable[..., Job]) -> None:
    long = job(LONG)
    process = long.start()
    until(kept(long), "output")
    line = " ".join(psutil.Process(process.pid).cmdline())
    assert "job_runner" in line and str(long.directory) in line
    runner = documents.read_document(long.attempt() / layout.RUNNER)
    assert runner is not None and runner["pid"] == process.pid


def test_the_kernel_does_not_hold_the_lock(job: Callable[..., Job]) -> None:
    """A process that the notebook leaves behind must not keep a dead attempt alive."""
    source = "import subprocess\np = subprocess.Popen(['sleep', '30'], start_new_session=True)"
    left = job(notebook(source + "\nprint('kept', p.pid)"))
    assert left.run() == 0
    child = int(left.printed().split()[-1])
    assert psutil.pid_exists(child)
    assert not liveness.is_alive(left.attempt())
    subprocess.run(["kill", "-9", str(child)], check=True)
