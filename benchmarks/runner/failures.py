"""Runs that are ended from outside: what is left of them, and how soon.

The notebook prints `LINES` lines, says so in a file, and then waits for its end or brings it about.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from .measure import SOURCE, RunFolders, kill_tree, last_log_line, start
from .peers import RESULT, Peer
from .result_checks import Output, exactly, find_fault

LINES = 20
GRACE = 30.0
"""Seconds after which Kubernetes sends SIGKILL to whoever is still there."""
_START_TIMEOUT = 60.0
_MARKER = "reached"

_PRINTS = f"""\
import os, pathlib, signal, time
for number in range({LINES}):
    print('line', number, flush=True)
"""
_SAYS = f"""
pathlib.Path('{_MARKER}.new').write_text(repr(time.time()))
os.rename('{_MARKER}.new', '{_MARKER}')
"""
# ipykernel publishes from another thread: what it holds back itself, no client can keep.
_DIES = f"{_PRINTS}time.sleep(0.5){_SAYS}os.kill(os.getpid(), signal.SIGKILL)"
_WAITS = f"{_PRINTS}{_SAYS}time.sleep(600)"
_ALL_LINES = exactly(lambda: [[("stdout", "".join(f"line {n}\n" for n in range(LINES)))], []])
_INTERRUPTED = ("error", "KeyboardInterrupt")


def _printed(found: list[list[Output]]) -> str:
    """Return what is wrong with the lines. Whoever interrupts the cell may show where it was."""
    return _ALL_LINES([[output for output in cell if output != _INTERRUPTED] for cell in found])


@dataclass(frozen=True)
class Failure:
    """`told`: SIGTERM is sent. `first`: as PID 1 of a namespace. `code`: how ours has to exit."""

    name: str
    cell: str
    code: int
    told: bool = False
    first: bool = False


FAILURES = {
    failure.name: failure
    for failure in (
        Failure("kernel-killed", _DIES, code=4),
        Failure("sigterm", _WAITS, code=143, told=True),
        Failure("sigterm-pid1", _WAITS, code=143, told=True, first=True),
    )
}


@dataclass(frozen=True)
class Ending:
    """`saved` and `ended` are seconds from the blow to the result and to the runner's exit.

    `saved` is None where nothing was saved any more.
    """

    saved: float | None
    ended: float
    exit_code: int
    wrong: str


def run_failure(folders: RunFolders, failure: Failure, peer: Peer) -> Ending:
    """Let one run come to grief; return what became of it."""
    folder = folders.fresh([failure.cell, "print('after')"])
    before = _namespace() if failure.first else []
    environment = folders.environment(peer.environment)
    process = start([*before, *peer.command(SOURCE)], folder, environment)
    try:
        begin = _wait_for_marker(folder, process)
        if failure.told:
            runner = psutil.Process(process.pid)
            if failure.first:
                (runner,) = runner.children()
            begin = time.time()
            runner.send_signal(signal.SIGTERM)
        code = _exit_code(process)
        ended = time.time() - begin
        return _ending(folder / RESULT, failure, peer, begin, ended, code)
    finally:
        kill_tree(process.pid)
        process.wait()
        shutil.rmtree(folder)


def _ending(
    result: Path, failure: Failure, peer: Peer, begin: float, ended: float, code: int
) -> Ending:
    saved = None
    if result.exists() and result.stat().st_mtime > begin:
        saved = result.stat().st_mtime - begin
    faults = [find_fault(result, _printed)]
    if (code != failure.code) if peer.is_ours else code == 0:
        faults.append(f"exit {code}")
    return Ending(saved, ended, code, ", ".join(filter(None, faults)))


def _wait_for_marker(folder: Path, process: subprocess.Popen[bytes]) -> float:
    """Wait until the cell has printed everything; return when that was."""
    until = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < until and process.poll() is None:
        if (folder / _MARKER).exists():
            break
        time.sleep(0.005)
    if not (folder / _MARKER).exists():
        raise RuntimeError(f"the cell was never reached: {last_log_line(folder)}")
    return float((folder / _MARKER).read_text())


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Return a process's exit code; -9 if it had to be killed after the grace period."""
    try:
        return process.wait(GRACE)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        return process.wait()


def _namespace() -> Sequence[str]:
    """Return what starts a command as the first process of a pid namespace."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *rights, "--fork", "--pid", "--mount-proc", "--kill-child", "--"]
