"""A cluster by hand: it says how to reach it, and one kill takes all of it away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.programs import build_programs
from tests.cluster.box.wait import wait_for

ROOT = Path(__file__).parents[2]


def processes_of(directory: Path) -> list[str]:
    """Return the command lines of the processes that a box in the directory consists of."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue  # it has just ended
            if os.fsencode(directory) in line:
                found.append(line.replace(b"\0", b" ").decode())
    return found


@pytest.mark.side_by_side
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_one_signal_ends_the_cluster(box: Box, number: signal.Signals) -> None:
    assert box  # one can run here
    with tempfile.TemporaryDirectory(
        prefix="box-"
    ) as directory:  # pytest's are too long for sockets
        check_end(Path(directory), number)


def check_end(short_path: Path, number: signal.Signals) -> None:
    """Check that a signal ends a cluster, whose files are below a path."""
    log = short_path / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.box", "up"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(short_path)},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as up,
    ):
        assert up.stdout
        line = up.stdout.readline().strip()
        assert line, log.read_text()
        directory = Path(line).parent
        cluster = Cluster(build_programs() / "kubectl", Path(line), short_path / "cache")
        assert len(cluster.kubectl("get", "nodes", "-o=name").split()) == 2
        assert len(processes_of(directory)) > 10

        up.send_signal(number)

    wait_for("nothing of it runs", lambda: processes_of(directory) == [])
    # What SIGKILL leaves of the files goes when another cluster takes the slot.
    assert directory.exists() == (number == signal.SIGKILL)
