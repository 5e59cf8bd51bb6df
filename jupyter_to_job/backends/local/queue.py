"""The line: higher priority first, then first come first served, and who may go before whom.

Nobody takes from under somebody ahead what that one waits for. A job may start before another that
is ahead of it only if it uses none of the resources which the other waits for: a job for CPUs does
not stand behind one for the only GPU, and a small job never starves a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from ...exchange import Request
from .capacity import Amounts
from .slots import Allocation, Slots


def in_line(waiting: Iterable[Request]) -> list[Request]:
    """Return the waiting requests, next first."""
    return sorted(waiting, key=lambda r: (-r.priority, r.submitted, r.name))


def demand_of(request: Request) -> dict[str, Decimal]:
    """Return what a job occupies, without what it asks nothing of."""
    amounts = {name: Decimal(amount) for name, amount in request.demand.items()}
    return {name: amount for name, amount in amounts.items() if amount}


def start(line: Iterable[Request], slots: Slots) -> Iterator[tuple[Request, Allocation]]:
    """Yield the jobs whose turn it is with their slots, which they hold from then on."""
    waited_for: set[str] = set()
    for request in line:
        demand: Amounts = demand_of(request)
        lacking = slots.lacking(demand)
        if lacking or waited_for.intersection(demand):
            waited_for |= lacking
        else:
            yield request, slots.take(request.name, demand)
