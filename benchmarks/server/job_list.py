"""The list of many jobs: a page of it on both sides."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import targets
from .client import Client
from .ours import PAGE, OurServer
from .peer import PAGE as PEER_PAGE
from .peer import PeerServer
from .report import MS, Report, Row

INDEX_DELAY = 3.0
"""Seconds after which our index takes a directory that changed: see `exchange.stamps.RACY`."""


def measure_list(ours: OurServer, peer: PeerServer, jobs: int, looks: int, report: Report) -> None:
    """Fill both stores, and look at the list `looks` times each, in turns."""
    for server in (ours, peer):
        began = time.perf_counter()
        with server.running() as client:
            sample = server.submit(client)
            server.wait_until_ended(sample)
            server.wait_until_idle()
        server.add_jobs(jobs, sample)
        print(
            f"{server.name}: {jobs:,} jobs made in {time.perf_counter() - began:.0f} s", flush=True
        )
    time.sleep(INDEX_DELAY)
    our_times, peer_times, small_peer_times = list[float](), list[float](), list[float]()
    with ours.running() as our_client, peer.running() as peer_client:
        first = _time_page(ours.list_jobs, our_client, PAGE)
        for number in range(looks + 1):
            # A look that does not count ends a server's rest: ours is longer, while the peer sends
            # its large page, and some machines make what rested slow (`machine.print_machine`).
            ours.list_jobs(our_client)
            our_time = _time_page(ours.list_jobs, our_client, PAGE)
            peer.list_some_jobs(peer_client, PAGE)
            times = (
                our_time,
                _time_page(peer.list_jobs, peer_client, min(jobs, PEER_PAGE)),
                _time_page(lambda client: peer.list_some_jobs(client, PAGE), peer_client, PAGE),
            )
            if number:  # the first does not count
                for elapsed, figures in zip(
                    times, (our_times, peer_times, small_peer_times), strict=True
                ):
                    figures.append(elapsed)
    report.section(f"the list, {jobs:,} jobs in both stores, {looks} looks")
    name = f"a page of {PAGE} / of {PEER_PAGE}"
    report.add(Row(name, our_times, peer_times, targets.PAGE, unit=MS))
    report.add(Row(f"  a page of {PAGE} / of {PAGE}", our_times, small_peer_times, unit=MS))
    report.add(Row("  our first look, without an index", [first], unit=MS))


def _time_page(page: Callable[[Client], int], client: Client, expected: int) -> float:
    count = page(client)
    if count != expected:
        raise RuntimeError(f"a page of {count} instead of {expected} jobs")
    return client.elapsed
