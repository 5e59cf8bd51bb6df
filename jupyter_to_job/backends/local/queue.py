"""The queue's order: higher priority first, then first come, first served.

A job may overtake an earlier one only if it uses none of the resources that one waits for. So a job
for CPUs does not wait behind one for the only GPU, and a small job never starves a large one. A job
that its group's limit holds back waits for no resource, so that nobody waits behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from operator import attrgetter

from ...exchange import Request
from .capacity import Amounts
from .slots import Allocation, Slots, is_group_full


def in_queue_order(waiting: Iterable[Request]) -> list[Request]:
    """Return the waiting requests, next first."""
    return sorted(waiting, key=attrgetter("queue_key"))


def demand_of(request: Request) -> dict[str, Decimal]:
    """Return the amounts that a job occupies, without those that are zero."""
    amounts = {name: Decimal(amount) for name, amount in request.demand.items()}
    return {name: amount for name, amount in amounts.items() if amount}


def start(queue: Iterable[Request], slots: Slots) -> Iterator[tuple[Request, Allocation]]:
    """Allocate slots to the jobs whose turn it is; yield them with their slots."""
    waited_for: set[str] = set()
    for request in queue:
        if is_group_full(request, slots.allocations):
            continue
        demand: Amounts = demand_of(request)
        lacking = slots.lacking(demand)
        if lacking or waited_for.intersection(demand):
            waited_for |= lacking
        else:
            yield request, slots.take(request.name, demand, request.group)
