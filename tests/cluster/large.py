"""Large inputs and results, between a workspace on this machine and the cluster.

The test is the process in the dev pod, as in `place`. A proxy between it and the gateway cuts its
connections and counts what passes. The soak has the same checks with the full sizes.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

from jupyter_to_job.domain.job import Submission
from tests import notebooks
from tests.cluster.place import ClusterPlace
from tests.cluster.product import DevPod
from tests.cluster.scenes import AGENT, find_process, kill_controller, large_output
from tests.cutting_proxy import CuttingProxy, cutting_proxy

MIB = 1 << 20
PIECE = 16 * MIB
OVERHEAD = 4 * MIB
REFUSED = 64 * MIB
"""Bytes that went to nobody: what was in the buffers of connections to a killed controller."""
CONTROLLER, CONTROLLER_MEMORY = b"jupyter_to_job.controller", 400 * MIB
AGENT_MEMORY = 128 * MIB
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
    with cutting_proxy(place.url) as proxy:
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
    peak = 0
    while not place.service.get(job.name).state.final:
        peak = max(peak, peak_memory(find_process(AGENT, job.name)))
        time.sleep(0.1)
    for each in (job, again):
        assert f"# {digest}" in place.result(place.decided(each.name)).read_text()
    assert 0 < peak < AGENT_MEMORY
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


def peak_memory(pid: int | None) -> int:
    """Return the most memory that a process had at a time, in bytes; 0 if there is none."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) << 10 if found else 0


def check_memory_of_controller() -> None:
    """Check that no controller of this machine ever had much in memory."""
    peaks = [
        peak_memory(int(process.name))
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and CONTROLLER in command_line(process)
    ]
    assert peaks
    assert max(peaks) < CONTROLLER_MEMORY


def command_line(process: Path) -> bytes:
    """Return a process's command line; none of one that has ended."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
