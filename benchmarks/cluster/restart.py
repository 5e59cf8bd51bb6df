"""How a gateway's process comes back after it was killed, with clients that never stop asking."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

import httpx

from .crowd import Clients, at_work
from .process import GatewayProcess
from .record import Crowd

PROBE_INTERVAL = 0.02
"""Seconds between two questions."""
BOUND = 120.0
"""Seconds after which a process that has not settled never will."""
_JOBS = re.compile(rb"^jupyter_to_job_jobs\{.*\} (\S+)$", re.MULTILINE)
_QUEUE = re.compile(rb"^jupyter_to_job_queue_depth\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Restart:
    """Seconds, the first two from the start of the new process.

    `answered`: its health answers. `settled`: the reconciler has looked at every job, each stream
    has its open jobs, and each agent has sent something. `health`: the longest answer of the health
    until then. `page`: a page of a list, asked for as soon as the health answered. `cpu`: the
    processor time of the process until it had settled, which others on the machine change less.
    """

    answered: float
    settled: float
    health: float
    page: float
    cpu: float


class Probe:
    """Asks a process for its health, from its start on."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.answers = asyncio.Event()
        self.longest = 0.0

    async def run(self) -> None:
        """Ask for ever. Once it has answered, every failure counts as an error."""
        while True:
            began = time.monotonic()
            try:
                (await self._client.get("/healthz")).raise_for_status()
            except httpx.ConnectError:
                if self.answers.is_set():
                    raise
            else:
                self.longest = max(self.longest, time.monotonic() - began)
                self.answers.set()
            await asyncio.sleep(PROBE_INTERVAL)


async def measure_restart(
    gateway: GatewayProcess, clients: Clients, crowd: Crowd, jobs: list[str], interval: float
) -> Restart:
    """Kill a gateway amid its crowd, start it again, and wait until all is as before."""
    owners = [crowd.owner(number) for number in range(crowd.streams)]

    def is_served() -> bool:
        return clients.informed >= set(owners) and clients.accepted >= set(jobs)

    followers = [clients.keep_following(owner) for owner in owners]
    async with at_work(*followers, *(clients.run_job(job, interval) for job in jobs)):
        while not is_served():
            await asyncio.sleep(PROBE_INTERVAL)
        gateway.kill()
        clients.informed.clear()
        clients.accepted.clear()
        gateway.start()
        began = time.monotonic()
        async with httpx.AsyncClient(base_url=gateway.operations_url, timeout=BOUND) as client:
            probe = Probe(client)
            async with at_work(probe.run()):
                await asyncio.wait_for(probe.answers.wait(), BOUND)
                answered = time.monotonic() - began
                page = await clients.page(owners[0])
                while not (is_served() and await _knows_all(client, crowd)):
                    assert time.monotonic() < began + BOUND, "it does not settle"
                    await asyncio.sleep(PROBE_INTERVAL)
                settled = time.monotonic() - began
                cpu = gateway.cpu_seconds()
        return Restart(answered, settled, probe.longest, page, cpu)


async def _knows_all(client: httpx.AsyncClient, crowd: Crowd) -> bool:
    """Tell whether the reconciler has looked at all jobs, and has none to look at now."""
    metrics = (await client.get("/metrics")).content
    known, waiting = (sum(map(float, values.findall(metrics))) for values in (_JOBS, _QUEUE))
    return known == crowd.kept + crowd.running and waiting == 0
