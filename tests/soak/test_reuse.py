"""Process ids that belong to somebody else by now, and a host that was rebooted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout
from job_runner.protocol.journal.journal import encode

from ..processes import until
from .evidence import LOST
from .moments import draw
from .scene import Scene
from .test_killed import CHARACTERS

_RECORDS_SIGNALS = """\
import pathlib, signal, sys, time
said = pathlib.Path(sys.argv[1])
def note(number, frame):
    with said.open("a") as file:
        file.write(f"{number}\\n")
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, note)
said.touch()
while True:
    time.sleep(0.05)
"""


@dataclass
class Stranger:
    """A process of somebody else: a session of its own that notes every signal it is sent."""

    process: subprocess.Popen[bytes]
    said: Path

    def assert_untouched(self) -> None:
        assert self.process.poll() is None, "the stranger was killed"
        assert self.said.read_text() == "", "the stranger was signalled"

    @property
    def start_time(self) -> int:
        """Return its start in clock ticks since boot (proc(5), field 22 of stat)."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[19])


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    said = tmp_path / "signals"
    command = [sys.executable, "-c", _RECORDS_SIGNALS, str(said)]
    process = subprocess.Popen(command, start_new_session=True)
    until(said.exists, "the stranger")
    yield Stranger(process, said)
    process.kill()
    process.wait()


def forge(directory: Path, stranger: Stranger, *, kernel: bool, **runner: Any) -> None:
    """Give a dead attempt's runner, and its kernel if there was one, the stranger's process id."""
    path = directory / layout.RUNNER
    document = documents.read_document(path) or {}
    documents.write_document(path, {**document, "pid": stranger.process.pid, **runner})
    if not kernel:
        return
    journal = directory / layout.JOURNAL / "00000001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        if b'"k":"kernel"' in line:
            lines[at] = encode({"t": 0.0, "k": "kernel", "pid": stranger.process.pid})
    journal.write_bytes(b"".join(lines))


def test_process_ids_reused(
    scene: Scene, rng: random.Random, met: Counter[str], stranger: Stranger
) -> None:
    """All are killed, and their numbers given away; a cancel makes who signals look twice."""
    _forged(scene, rng, met, stranger, {})


def test_a_reboot(scene: Scene, rng: random.Random, met: Counter[str], stranger: Stranger) -> None:
    """Nothing runs any more, and even number and start time are those of another process."""
    before = {"boot_id": "00000000-0000-0000-0000-000000000000"}
    scene.rebooted = True
    _forged(scene, rng, met, stranger, {**before, "start_time": stranger.start_time})


def _forged(
    scene: Scene, rng: random.Random, met: Counter[str], stranger: Stranger, runner: dict[str, Any]
) -> None:
    names = scene.submit(3)
    draw(rng, ["claimed", "kernel", "answered", "printing", "printing"], CHARACTERS).wait(
        scene.directory(rng.choice(names)), scene.cli.workspace
    )
    cancelled = rng.choice([None, *names])
    with scene.witness.hold():
        scene.kill_all(["dispatcher", "runner", "kernel"])
        was_claimed = cancelled is not None and scene.look(cancelled).claimed
        for name in names:
            seen = scene.must_keep(name)
            if not seen.claimed:
                continue
            scene.expect([name], seen.when_killed)
            scene.witness.is_dead(name)
            has_kernel = seen.kernel is not None  # else it was killed as soon as it was claimed
            forge(scene.directory(name) / "attempt-1", stranger, kernel=has_kernel, **runner)
            if name == cancelled and seen.when_killed == LOST:
                scene.expect([name], LOST, ("cancelled", None))  # whether the wish came in time
    if cancelled:
        assert scene.cli.run("cancel", cancelled).returncode == 0
        if not was_claimed:  # it has started anew, and may have ended before the wish
            scene.expect([cancelled], scene.look(cancelled).ended or ("cancelled", None))
    for job in scene.settle().values():
        met[str(job["reason"] or job["state"])] += 1
    stranger.assert_untouched()
    os.kill(stranger.process.pid, signal.SIGUSR1)  # it would have noticed
    until(stranger.said.read_text, "the stranger's note")
