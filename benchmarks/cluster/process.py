"""The gateway as a process that can be killed and started again at the same addresses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil


class GatewayProcess:
    """`benchmarks.cluster.gateway` on an exchange; `jobs` are those whose pods run."""

    def __init__(self, exchange: Path, jobs: list[str]) -> None:
        self._command = (sys.executable, "-m", "benchmarks.cluster.gateway", str(exchange), *jobs)
        self._ports = (0, 0)
        self.start()

    def start(self) -> None:
        """Start the process, at the ports that it had before. Return at once after the first."""
        is_first = self._ports == (0, 0)
        ports = ("--ports", *map(str, self._ports))
        self._process = subprocess.Popen(
            [*self._command, *ports], stdout=subprocess.PIPE, text=True
        )
        if is_first:
            assert self._process.stdout is not None
            gateway, operations = map(int, self._process.stdout.readline().split())
            self._ports = (gateway, operations)

    def kill(self) -> None:
        """Kill the process, and wait for its end."""
        self._process.kill()
        self._process.communicate()

    @property
    def port(self) -> int:
        """The gateway's port."""
        return self._ports[0]

    @property
    def operations_url(self) -> str:
        """The address of probes and metrics."""
        return f"http://127.0.0.1:{self._ports[1]}"

    def cpu_seconds(self) -> float:
        """Return the processor time that the process has used."""
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def memory(self) -> int:
        """Return the bytes that the process has in memory."""
        return int(psutil.Process(self._process.pid).memory_info().rss)
