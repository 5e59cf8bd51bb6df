"""The places of the waiting jobs in their hosts' queues.

Thousands may wait, and they are asked for all the time. A job that comes last moves nobody: what is
known of the others stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ...domain.errors import NeverFits
from ...domain.reasons import GROUP_LIMIT, group_limit_message
from ...domain.state import Placement
from ...exchange import Request
from ...exchange.request import Demand
from .capacity import admit
from .queue import demand_of, in_queue_order
from .slots import SlotReport, is_group_full

_LOWEST_KEY = (-1_000_000, "")


@dataclass(frozen=True)
class HostQueue:
    """A host's slots, and a message for those who wait for it (None: it serves its queue)."""

    slots: SlotReport | None
    message: str | None


@dataclass(frozen=True)
class PlacedQueue:
    """The waiting jobs, and their placements by name.

    `positions` counts the jobs of each host that have a place. `last_key` is the greatest key in
    the queue's order.
    """

    hosts: Mapping[str, HostQueue]
    this_host: str
    waiting: Mapping[str, Request]
    placements: Mapping[str, Placement]
    positions: Mapping[str, int]
    last_key: tuple[int, str] = _LOWEST_KEY

    @classmethod
    def of(
        cls, waiting: Mapping[str, Request], hosts: Mapping[str, HostQueue], this_host: str
    ) -> PlacedQueue:
        """Return a queue; `hosts` has all hosts of the waiting jobs."""
        empty = cls(hosts, this_host, {}, {}, dict.fromkeys(hosts, 0))
        return empty._extended(waiting, waiting.values())

    def updated(
        self, waiting: Mapping[str, Request], hosts: Mapping[str, HostQueue]
    ) -> PlacedQueue:
        """Return the queue with these jobs: the same object if nothing changed."""
        if hosts == self.hosts:
            if waiting is self.waiting or waiting == self.waiting:
                return self
            if self.waiting.items() <= waiting.items():
                new = [waiting[name] for name in waiting.keys() - self.waiting.keys()]
                if min(request.queue_key for request in new) > self.last_key:
                    return self._extended(waiting, new)
        return self.of(waiting, hosts, self.this_host)

    def _extended(
        self, waiting: Mapping[str, Request], new_requests: Iterable[Request]
    ) -> PlacedQueue:
        """Return the queue with more jobs at its end."""
        starting = {job for q in self.hosts.values() if q.slots for job in q.slots.allocations}
        placements, positions, last_key = {**self.placements}, {**self.positions}, self.last_key
        never_fit: dict[Demand, Placement | None] = {}
        for request in in_queue_order(new_requests):
            last_key = request.queue_key
            if request.name in starting:
                placements[request.name] = Placement(starting=True)
                continue
            host = request.environment.host or self.this_host
            queue = self.hosts[host]
            if queue.slots is not None and is_group_full(request, queue.slots.allocations):
                placements[request.name] = _held_back(request.group or "", request.group_limit or 0)
                continue
            demand = request.demand_on_host
            if demand not in never_fit:
                never_fit[demand] = _never_fits(request, queue.slots)
            placement = never_fit[demand]
            if placement is None:
                positions[host] += 1
                placement = _placement(positions[host], queue.message)
            placements[request.name] = placement
        return replace(
            self, waiting=waiting, placements=placements, positions=positions, last_key=last_key
        )


@lru_cache(maxsize=1 << 14)
def _placement(position: int, message: str | None) -> Placement:
    return Placement(position=position, message=message)


@lru_cache(maxsize=1 << 10)
def _held_back(group: str, limit: int) -> Placement:
    return Placement(reason=GROUP_LIMIT, message=group_limit_message(group, limit))


def _never_fits(request: Request, slots: SlotReport | None) -> Placement | None:
    """Return the placement of a job that is larger than all slots together; else None."""
    demand = demand_of(request)
    if slots is None or not (slots.is_complete or slots.total.keys() >= demand.keys()):
        return None
    try:
        admit(demand, slots.total)
    except NeverFits as error:
        return Placement(
            reason="Unschedulable",
            message=f"{error.message} It waits for larger slots (JUPYTER_TO_JOB_CAPACITY) and "
            "stops nobody; cancel it, or submit it again smaller.",
        )
    return None
