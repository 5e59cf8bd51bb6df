"""Large inputs and results, between a workspace on this machine and the cluster.

The test is the process in the dev pod, as in `place`. A proxy between it and the gateway cuts its
connections and counts what passes. The soak has the same checks with the full sizes.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

from jupyter_to_job.domain.job import Submission
from tests import notebooks
from tests.cluster.controllers import kill_controller
from tests.cluster.deliveries import (
    COURIER,
    results,
    until_delivered,
    until_no_couriers,
)
from tests.cluster.deliveries import Place as DeliveryPlace
from tests.cluster.peaks import command_lines, peak_memory, peaks_of
from tests.cluster.place import ClusterPlace
from tests.cluster.product import DevPod
from tests.cluster.scenes import AGENT, large_output
from tests.cutting_proxy import CuttingProxy, cutting_proxy

MIB = 1 << 20
PIECE = 16 * MIB
OVERHEAD = 4 * MIB
REFUSED = 64 * MIB
"""Bytes that went to nobody: what was in the buffers of connections to a killed controller."""
CONTROLLER, CONTROLLER_MEMORY = b"jupyter_to_job.controller", 400 * MIB
AGENT_MEMORY = 128 * MIB
RECEIVER_MEMORY = {"fold": 200 * MIB, "courier": 96 * MIB, "command": 128 * MIB}
"""Bytes in memory of what puts a result together, and of the two that write it to a claim."""
DIGEST = """\
import hashlib
digest = hashlib.sha256()
with open("large.bin", "rb") as file:
    while chunk := file.read(1 << 20):
        digest.update(chunk)
print("#", digest.hexdigest())
"""


def check_large_input(place: ClusterPlace, dev_pod: DevPod, size: int) -> None:
    """Check an input whose controller is killed when the half of it was sent.

    No more than a piece is sent twice; the run reads what was sent; nothing of it is sent again for
    another job; and no process has it in memory.
    """
    digest = write_random(place.workspace / "dir" / "large.bin", size)
    notebooks.write(place.workspace / "dir" / "digest.ipynb", DIGEST)
    asked = Submission("dir/digest.ipynb", inputs=("dir/large.bin",))
    kinds = {"agent": (AGENT, b"digest-")}
    with peaks_of(kinds) as peaks, cutting_proxy(place.url) as proxy:
        service = place.service_at(proxy.url)

        def kill_half_way() -> None:
            until_sent(proxy, size // 2)
            proxy.gate.clear()
            try:
                kill_controller(dev_pod)
            finally:
                proxy.gate.set()

        killer = threading.Thread(target=kill_half_way, daemon=True)
        killer.start()
        job = service.submit(asked)[0]
        killer.join()
        assert size < proxy.sent < size + PIECE + REFUSED
        sent = proxy.sent
        again = service.submit(replace(asked, name="again"))[0]
        assert proxy.sent - sent < OVERHEAD
        place.until(lambda: place.service.get(job.name).state.final, f"{job.name} has ended")
    for each in (job, again):
        assert f"# {digest}" in place.result(place.decided(each.name)).read_text()
    assert 0 < peaks["agent"] < AGENT_MEMORY
    check_memory_of_controller()


def check_large_result(place: ClusterPlace, megabytes: int) -> None:
    """Check a result whose connection is cut half-way: the rest of it follows."""
    notebooks.write(place.workspace / "dir" / "prints.ipynb", *large_output(megabytes))
    size = megabytes * 1_000_000
    name = place.submit("dir/prints.ipynb").name
    place.until(lambda: place.service.get(name).state.final, f"{name} has ended")
    with cutting_proxy(place.url) as proxy:
        proxy.cut_after_received(size // 2)
        job = place.service_at(proxy.url).deliver(name)
        assert proxy.cuts == 1
        assert proxy.received < size + OVERHEAD
    assert (job.state.value, job.delivery.state.value) == ("succeeded", "delivered"), job
    assert place.result(job).read_text().count("x") >= size
    check_memory_of_controller()


def check_result_by_courier(place: DeliveryPlace, megabytes: int, timeout: float) -> None:
    """Check a result that a courier brings to a claim, and one that a command of its dev pod does.

    Neither of them, nor what puts the results together, has one in memory.
    """
    kinds = {
        "fold": (b"job_runner\0finish\0", b"couriered-"),
        "courier": (COURIER, b"couriered-"),
        "command": (b"/bin/jupyter-to-job\0wait\0", b"pulled-"),
    }
    with peaks_of(kinds) as peaks:
        command, courier = (
            place.submit(*large_output(megabytes), stem=stem) for stem in ("pulled", "couriered")
        )
        pulled = command.until_ended(timeout)
        until_delivered(courier, timeout)
        until_no_couriers(courier)
    figures = ", ".join(f"{kind} {peak / MIB:.0f} MiB" for kind, peak in peaks.items())
    print(f"{megabytes} MB, most memory: {figures}")  # noqa: T201 - for `pytest -s`
    assert (pulled["state"], pulled["delivery"]["state"]) == ("succeeded", "delivered"), pulled
    for job in (command, courier):
        assert results(place, job) == [f"{job.name}.ipynb"]
        assert count_of(b"x", place.volume.folder / f"{job.name}.ipynb") >= megabytes * 1_000_000
    for kind, peak in peaks.items():
        assert 0 < peak < RECEIVER_MEMORY[kind], figures
    check_memory_of_controller()


def count_of(byte: bytes, path: Path) -> int:
    """Return how often a byte is in a file that may be large."""
    with path.open("rb") as file:
        return sum(chunk.count(byte) for chunk in iter(lambda: file.read(MIB), b""))


def write_random(path: Path, size: int) -> str:
    """Write a file that nothing can make smaller; return its digest."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(size // MIB):
            chunk = os.urandom(MIB)
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def until_sent(proxy: CuttingProxy, count: int) -> None:
    """Wait until so many bytes have gone to the gateway."""
    while proxy.sent < count:
        time.sleep(0.01)


def check_memory_of_controller() -> None:
    """Check that no controller of this machine ever had much in memory."""
    peaks = [peak_memory(pid) for pid, line in command_lines() if CONTROLLER in line]
    assert peaks
    assert max(peaks) < CONTROLLER_MEMORY
