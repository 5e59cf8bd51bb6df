"""Measures for how long a server answers nobody: a process of its own asks it again and again.

`python -m benchmarks.server.latency PORT TOKEN` prints a line once it has begun. At the end of its
input it prints the seconds that each answer took, as JSON. What it asks for needs only the event
loop of the server: no thread, no file.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

from .client import Client

PATH = "/api"
INTERVAL = 0.005
"""Seconds between an answer and the next request."""


@contextlib.contextmanager
def measured_latency(client: Client) -> Iterator[list[float]]:
    """Measure while the block runs. Afterwards the list has the seconds that each answer took."""
    command = [sys.executable, "-m", __name__, str(client.port), client.token]
    latencies: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield latencies
        finally:
            latencies += json.loads(process.communicate()[0])


def _wait_for_end(at_end: threading.Event) -> None:
    sys.stdin.read()
    at_end.set()


def main(port: int, token: str) -> None:
    """Ask until the input ends."""
    client, latencies = Client(port, token), list[float]()
    client.request("GET", PATH)
    print("begun", flush=True)
    at_end = threading.Event()
    threading.Thread(target=_wait_for_end, args=[at_end], daemon=True).start()
    while not at_end.wait(INTERVAL):
        client.request("GET", PATH)
        latencies.append(client.elapsed)
    print(json.dumps(latencies))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
