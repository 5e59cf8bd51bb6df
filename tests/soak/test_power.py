"""The power is cut: what was acknowledged is there afterwards, and nothing empty counts as whole.

The exchange and the workspace are on a file system of their own, which ends at a random moment as
in a power cut: nothing that is not on its device yet gets there any more (EXT4_IOC_SHUTDOWN).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import notebooks
from ..local.cli import Cli
from ..processes import BOUND, until
from .scene import Scene, digest

SIZE = 64 << 20
_SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN, from fs/ext4/ext4.h."""
_WITHOUT_LOG_FLUSH = struct.pack("I", 2)
FILES = 4
FILE_BYTES = 300_000
RUN = f"""\
print("computed")
for number in range({FILES}):
    with open(f"made-{{number}}.bin", "wb") as file:
        file.write(bytes([65 + number]) * {FILE_BYTES})
"""
STEPS: dict[str, Callable[[Path, Path], bool]] = {
    "ended": lambda job, _: b'"k":"end"' in _journal(job),
    "result": lambda job, _: (job / "attempt-1" / "result.ipynb").exists(),
    "outcome": lambda job, _: (job / "attempt-1" / "outcome.json").exists(),
    "publishing": lambda _, workspace: any(workspace.rglob(".jupyter-to-job-*.tmp")),
    "published": lambda job, workspace: (workspace / f"{job.name}.ipynb").exists(),
    "delivered": lambda job, _: (job / "delivery.json").exists(),
}
"""What has happened, between the last cell and the end of the delivery."""


def _journal(job: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (job / "attempt-1" / "journal" / "00000001.jsonl").read_bytes()
    return b""


class Device:
    """A block device of its own, with an ext4 mounted at `path`."""

    def __init__(self, image: Path, path: Path) -> None:
        self._image, self.path = image, path
        path.mkdir()
        with image.open("wb") as file:
            file.truncate(SIZE)
        _run("mkfs.ext4", "-q", str(image))
        self.mount()

    def mount(self) -> None:
        """Mount a copy of the image: whatever happens on this machine, nobody holds that.

        A process that enters mount namespaces of its own takes a copy of every mount along, and
        with it the file system whose power was cut. A test cluster beside this test does so.
        """
        copy = self._image.with_suffix(".copy")
        _run("cp", "--sparse=always", str(self._image), str(copy))
        copy.replace(self._image)
        _run("mount", "-o", "loop", str(self._image), str(self.path))

    def unmount(self) -> None:
        def is_free() -> bool:
            return subprocess.run(["umount", str(self.path)], capture_output=True).returncode == 0

        until(is_free, "the end of everything on this device")

    def cut(self) -> None:
        """Cut the power: from now on everything that uses the file system gets errors."""
        descriptor = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(descriptor, _SHUTDOWN, _WITHOUT_LOG_FLUSH)
        os.close(descriptor)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def device(tmp_path: Path, cli: Cli) -> Iterator[Device]:
    try:
        made = Device(tmp_path / "image", tmp_path / "disk")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file system in an image can be mounted by root only, with loop devices")
    cli.exchange, cli.workspace = made.path / "exchange", made.path / "workspace"
    cli.workspace.mkdir()
    yield made
    Scene(cli).kill_all(["dispatcher", "runner", "kernel"])
    cli.end()
    with contextlib.suppress(AssertionError):
        made.unmount()


def cut_and_restart(device: Device, cli: Cli) -> None:
    """Cut the power; every process ends, and the machine comes back."""
    device.cut()
    Scene(cli).kill_all(["dispatcher", "runner", "kernel"])
    device.unmount()
    device.mount()


def submit(cli: Cli) -> str:
    path = notebooks.write(cli.workspace / "train.ipynb", RUN)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    os.sync()  # the user's own notebook is not ours to keep
    return cli.submit(path.name, "--isolated")


def check(cli: Cli, name: str, told: dict[str, Any] | None) -> str:
    """Check that nothing is lost that was promised; return how it ended."""
    ran = cli.run("wait", name, "--json")
    assert ran.returncode in (0, 1), ran.stderr
    job = json.loads(ran.stdout)
    assert job["delivery"]["state"] == "delivered", (job["message"], job)
    if told is not None:
        assert (job["state"], job["delivery"]) == (told["state"], told["delivery"])
    outcome = json.loads((cli.exchange / name / "attempt-1" / "outcome.json").read_bytes())
    delivery = json.loads((cli.exchange / name / "delivery.json").read_bytes())
    result = cli.result(job)
    assert digest(result) == outcome["result_sha256"] == delivery["sha256"]
    if job["state"] != "succeeded":
        assert job["reason"] == "Lost", job
        return "Lost"
    assert notebooks.printed(result) == "computed\n"
    for number in range(FILES):
        made = cli.workspace / name / f"made-{number}.bin"
        assert made.read_bytes() == bytes([65 + number]) * FILE_BYTES
    assert job["delivery"]["message"] is None, job
    return "succeeded"


def _wait_for(step: str, cli: Cli, name: str) -> None:
    end = time.monotonic() + BOUND
    while not STEPS[step](cli.exchange / name, cli.workspace):
        assert time.monotonic() < end, f"{name} never came to {step}"
        if (cli.exchange / name / "delivery.json").exists():
            return  # it was faster than this look
        time.sleep(0.001)


@pytest.mark.parametrize("step", STEPS)
def test_power_cut_at_a_step(
    device: Device, cli: Cli, step: str, rng: random.Random, met: Counter[str]
) -> None:
    name = submit(cli)
    _wait_for(step, cli, name)
    told = None
    if step == "delivered":
        told = cli.json("show", name)
    time.sleep(rng.uniform(0, 0.01))
    cut_and_restart(device, cli)
    met[f"{step}: {check(cli, name, told)}"] += 1


def test_power_cut_at_random(
    device: Device, cli: Cli, rng: random.Random, met: Counter[str]
) -> None:
    name = submit(cli)  # acknowledged: from now on it must not be lost
    time.sleep(rng.uniform(0, 3.0))
    cut_and_restart(device, cli)
    met[check(cli, name, None)] += 1
