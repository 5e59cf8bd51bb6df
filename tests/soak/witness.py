"""Somebody who runs `list` all the time, and notices when it tells an untruth."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from contextlib import AbstractContextManager

from ..local.cli import Cli

FINAL = ("succeeded", "failed", "cancelled")
_PAUSE = 0.1
_LISTS = """\
import os, sys
from importlib.metadata import entry_points

(entry,) = entry_points(group="console_scripts", name="jupyter-to-job")
command = entry.load()
sys.argv = ["jupyter-to-job", "list", "--all", "--json"]

def run():
    try:
        command()
    except SystemExit as end:
        return end.code or 0
    return 0

run()  # all that it imports is there from now on
print("end 0", flush=True)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        code = run()
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    print("end", os.waitstatus_to_exitcode(status), flush=True)
"""
"""The command line, ready to run `list` for each line that it reads: a fork, not a start, so that
the watching takes little from those who are watched."""


class Witness:
    """Samples `list` in a thread from `start` to `stop`.

    Whoever kills a runner for good says so (`is_dead`) once the process is gone: from the next
    sample on that job must not be shown as living. A job that was shown as ended stays ended.
    """

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._dead: frozenset[str] = frozenset()
        self._final: dict[str, str] = {}
        self._stopping = threading.Event()
        self._sampling = threading.Lock()
        self.untruths: list[str] = []
        self.samples = 0
        self.seen: Counter[str] = Counter()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless that was done."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._sample_on, daemon=True)
            self._thread.start()

    def is_dead(self, name: str) -> None:
        """Tell that no process of this job lives any more, nor will again."""
        self._dead |= {name}

    def hold(self) -> AbstractContextManager[object]:
        """Return a context without samples: each `list` starts a dispatcher where there is none."""
        return self._sampling

    def stop(self) -> None:
        """Sample once more, if it had begun, and return when that is done."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive(), "`list` hangs"

    def _sample_on(self) -> None:
        lists = subprocess.Popen(
            [sys.executable, "-c", _LISTS],
            cwd=self._cli.workspace,
            env=self._cli.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        _answer(lists)
        while True:
            last = self._stopping.is_set()
            with self._sampling:
                self._sample(lists)
            if last:
                break
            self._stopping.wait(_PAUSE)
        lists.communicate()

    def _sample(self, lists: subprocess.Popen[str]) -> None:
        dead = self._dead
        assert lists.stdin is not None
        lists.stdin.write("again\n")
        lists.stdin.flush()
        listed, code = _answer(lists)
        self.samples += 1
        if code != 0:
            self.untruths.append(f"list: exit {code}")
            return
        for job in json.loads(listed):
            name, state = job["name"], job["state"]
            self.seen[state] += 1
            if state not in FINAL and name in dead:
                self.untruths.append(f"{name} is dead, and list says {state}")
            if state != self._final.get(name, state):
                self.untruths.append(f"{name} was {self._final[name]}, and list says {state}")
            if state in FINAL:
                self._final[name] = state


def _answer(lists: subprocess.Popen[str]) -> tuple[str, int]:
    """Return what one `list` printed, and its exit code."""
    assert lists.stdout is not None
    printed: list[str] = []
    for line in lists.stdout:
        if line.startswith("end "):
            return "".join(printed), int(line.split()[1])
        printed.append(line)
    return "".join(printed), -1
