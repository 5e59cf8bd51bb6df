"""Large bodies from nobody: the controller keeps its memory, and answers others meanwhile."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from urllib.parse import urlsplit

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import Cluster
from tests.cluster.product import FIRST, NAMESPACE, DevPod

BODY = 128 << 20
ROUTES = (
    f"PUT /api/blobs/{'0' * 64}",
    "POST /api/jobs",
    "POST /api/preflight",
    "PUT /api/exchange/train-abcdefgh/attempt-1/outcome.json",
)
TOKENS = ("", "Authorization: Bearer x\r\n", "Authorization: Bearer a.b.c\r\n", "")
PAUSE = 0.1
"""Seconds between two tries: the machine's two cores are the controller's, too."""
MAX_GROWTH = 20 << 10
"""KiB."""
MAX_P99 = 0.2
"""Seconds."""
MEMORY = """
import pathlib, sys
if sys.argv[1:]:
    pathlib.Path('/proc/1/clear_refs').write_text('5')  # the peak begins anew
lines = pathlib.Path('/proc/1/status').read_text().splitlines()
print(*(line.split()[1] for line in lines if line.startswith(('VmHWM', 'VmRSS'))))
"""
"""Prints the most memory that the controller ever had, and what it has now, in KiB."""
MEASURE = """
import httpx, json, os, sys, time
token = open('/var/run/secrets/jupyter-to-job/token').read()
mine = {'Authorization': 'Bearer ' + token}
times = []
gateway = os.environ['JUPYTER_TO_JOB_GATEWAY']
with httpx.Client(base_url=gateway, headers=mine, timeout=60) as client:
    for _ in range(int(sys.argv[1])):
        began = time.monotonic()
        assert client.get('/api/jobs').status_code == 200
        times.append(time.monotonic() - began)
        time.sleep(0.03)
print(json.dumps(sorted(times)))
"""


def memory(cluster: Cluster, *arguments: str) -> tuple[int, int]:
    """Return the controller's peak and present memory in KiB."""
    command = ("exec", "-n", NAMESPACE, "deployment/controller", "--", "python3", "-c", MEMORY)
    peak, now = cluster.kubectl(*command, *arguments).split()
    return int(peak), int(now)


def measure(dev_pod: DevPod, count: int) -> float:
    """Return the time of `GET jobs` for a known user, of 99 in 100 requests."""
    times: list[float] = json.loads(dev_pod.run("python3", "-c", MEASURE, str(count)))
    return times[len(times) * 99 // 100]


def pour(address: tuple[str, int], route: str, token: str, enough: Event) -> tuple[int, int]:
    """Send a body again and again; return how often, and how many bytes were taken."""
    piece, tries, taken = b"x" * (1 << 20), 0, 0
    while not enough.wait(PAUSE):
        head = f"{route} HTTP/1.1\r\nHost: gateway\r\nContent-Length: {BODY}\r\n{token}\r\n"
        tries += 1
        with socket.create_connection(address, timeout=30) as connection:
            try:
                connection.sendall(head.encode())
                for _ in range(BODY // len(piece)):
                    connection.sendall(piece)
                    taken += len(piece)
                assert connection.recv(12) == b"HTTP/1.1 403"
            except ConnectionError:
                pass  # it was refused before the body was sent
    return tries, taken


def test_large_bodies_from_nobody(dev_pod: DevPod, box: Box) -> None:
    url = urlsplit(FIRST.url(box))
    address = (str(url.hostname), url.port or 80)
    measure(dev_pod, 100)  # whatever is loaded at first is loaded
    _, before = memory(box, "reset")
    enough = Event()
    with ThreadPoolExecutor(len(ROUTES)) as pool:
        pouring = [
            pool.submit(pour, address, route, token, enough)
            for route, token in zip(ROUTES, TOKENS, strict=True)
        ]
        try:
            p99 = measure(dev_pod, 200)
        finally:
            enough.set()
        poured = [each.result() for each in pouring]
    peak, _ = memory(box)
    print(f"{poured=} growth={peak - before} KiB p99={p99 * 1000:.0f} ms")  # noqa: T201
    assert all(tries for tries, _ in poured)
    assert peak - before < MAX_GROWTH
    assert p99 < MAX_P99
