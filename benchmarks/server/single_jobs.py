"""One job at a time on both sides: how long the answer takes, and how long the result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from . import targets
from .client import Client
from .ours import OurServer
from .peer import PeerServer
from .report import MS, Report, Row
from .server import MeasuredServer


@dataclass
class Timings:
    """The seconds of one server's jobs: `after_pause` are the first of each turn."""

    answered: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    after_pause: list[float] = field(default_factory=list)
    downloaded: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def measure_single_jobs(
    ours: OurServer, peer: PeerServer, rounds: int, jobs: int, report: Report
) -> None:
    """Submit `jobs` jobs to each server in each of `rounds` turns, and print what that took."""
    our_timings, peer_timings = Timings(), Timings()
    with ours.running() as our_client, peer.running() as peer_client:
        for number in range(rounds + 1):
            # The first turn does not count: bytecode, first imports, profiles.
            count = jobs if number else 1
            measured = (our_timings, peer_timings) if number else (Timings(), Timings())
            turns = [(ours, our_client, measured[0]), (peer, peer_client, measured[1])]
            for server, client, timings in turns if number % 2 else turns[::-1]:
                _submit_jobs(server, client, timings, count)
        preflights = [ours.time_preflight(our_client) for _ in range(rounds * jobs)]
    report.section(f"one job at a time, {rounds} turns of {jobs} jobs each")
    report.add(
        Row("POST, answered", our_timings.answered, peer_timings.answered, targets.POST, unit=MS)
    )
    report.add(
        Row("  the first in a turn", our_timings.after_pause, peer_timings.after_pause, unit=MS)
    )
    report.add(
        Row(
            "POST to delivered / COMPLETED",
            our_timings.ended,
            peer_timings.ended,
            targets.DELIVERED,
        )
    )
    to_workspace = [a + b for a, b in zip(peer_timings.ended, peer_timings.downloaded, strict=True)]
    report.add(Row("  to the file in the workspace", our_timings.ended, to_workspace))
    report.add(Row("preflight, answered", preflights, limit=targets.PREFLIGHT, unit=MS))
    report.add_check("our results", our_timings.faults)
    report.add_check("the peer's results", peer_timings.faults)


def _submit_jobs(server: MeasuredServer, client: Client, timings: Timings, jobs: int) -> None:
    """Submit, wait for the result, and for the last process of it to leave; so many times."""
    for number in range(jobs):
        began = time.perf_counter()
        job = server.submit(client)
        timings.answered.append(client.elapsed)
        server.wait_until_ended(job)
        timings.ended.append(time.perf_counter() - began)
        if number == 0:
            timings.after_pause.append(timings.answered[-1])
        if isinstance(server, PeerServer):
            timings.downloaded.append(server.download(client, job))
        server.wait_until_idle()
        timings.faults += filter(None, [server.check_result(job)])
