"""When the jobs of a queue would start, if each ran as long as somebody says.

The rule is that of `queue.start`, with numbers that are quick to calculate with: one forecast plays
through a hundred jobs in a few milliseconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ...exchange import Request
from .queue import demand_of
from .slots import SlotReport, sum_of

_TOLERANCE = 1e-9
"""What an amount may be too large by: sums of floats are not exact."""
_Amounts = Mapping[str, float]


def forecast_starts(
    slots: SlotReport,
    queue: Sequence[Request],
    run_time: Callable[[Request], float | None],
    remaining: Callable[[str], float | None],
) -> list[float | None]:
    """Return in how many seconds each job of a queue starts; the next one comes first.

    `run_time` says how long a job runs, and `remaining` how long one that has a slot still does.
    None: nobody knows, and the job counts as one that never ends. A job of which nobody knows when
    it starts is None in the answer.
    """
    machine = _Machine(slots, remaining)
    demands = [{name: float(amount) for name, amount in demand_of(r).items()} for r in queue]
    shared = set.intersection(*map(set, demands)) if demands else set()
    starts: list[float | None] = [None] * len(queue)
    pending = list(range(len(queue)))
    while pending:
        still_pending: list[int] = []
        waited_for: set[str] = set()
        for place, index in enumerate(pending):
            if waited_for & shared:  # all that follow need it, too
                still_pending += pending[place:]
                break
            request, demand = queue[index], demands[index]
            if machine.is_group_full(request):
                still_pending.append(index)
                continue
            lacking = machine.lacking(demand)
            if lacking or waited_for & demand.keys():
                waited_for |= lacking
                still_pending.append(index)
            else:
                starts[index] = machine.time
                machine.start(demand, request.group, run_time(request))
        pending = still_pending
        if not machine.wait_for_end():
            break
    return starts


class _Machine:
    """The slots of a host while time goes on, in seconds from now."""

    def __init__(self, slots: SlotReport, remaining: Callable[[str], float | None]) -> None:
        self.time = 0.0
        used = sum_of(slots.allocations.values())
        self._free = {n: float(total - used.get(n, 0)) for n, total in slots.total.items()}
        self._groups: Counter[str | None] = Counter()
        self._ends: list[tuple[float, int, _Amounts, str | None]] = []
        for name, allocation in slots.allocations.items():
            seconds = remaining(name)
            self._groups[allocation.group] += 1
            demand = {n: float(amount) for n, amount in allocation.demand.items()}
            end = math.inf if seconds is None else seconds
            self._ends.append((end, len(self._ends), demand, allocation.group))
        self._count = len(self._ends)
        heapify(self._ends)

    def lacking(self, demand: _Amounts) -> set[str]:
        """Return the resources of which less is free than `demand`."""
        free = self._free
        return {n for n, amount in demand.items() if amount > free.get(n, 0.0) + _TOLERANCE}

    def is_group_full(self, request: Request) -> bool:
        """Tell whether as many jobs of the request's group run as its limit allows."""
        limit = request.group_limit
        return limit is not None and self._groups[request.group] >= limit

    def start(self, demand: _Amounts, group: str | None, seconds: float | None) -> None:
        """Let a job run for some seconds; None: without an end."""
        self._change(demand, group, -1)
        end = math.inf if seconds is None else self.time + seconds
        heappush(self._ends, (end, self._count, demand, group))
        self._count += 1

    def wait_for_end(self) -> bool:
        """Go on to the next moment at which jobs end; tell whether there is one."""
        if not self._ends or math.isinf(self._ends[0][0]):
            return False
        self.time = self._ends[0][0]
        while self._ends and self._ends[0][0] <= self.time:
            _, _, demand, group = heappop(self._ends)
            self._change(demand, group, 1)
        return True

    def _change(self, demand: _Amounts, group: str | None, sign: int) -> None:
        for name, amount in demand.items():
            self._free[name] = self._free.get(name, 0.0) + sign * amount
        self._groups[group] -= sign
