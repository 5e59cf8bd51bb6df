"""Watches what a kernel and all that it started use: for the receipt, and for the memory limit.

In a thread of its own, because looking at a process may block. It looks as often as the memory that
is left may be used up, ten times a second at most, and less often where looking is expensive.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from . import gpu, host_memory
from .meter import Meter
from .process_tree import TreeUsage, measure
from .usage import Usage

_SLOWEST, _FASTEST = 1.0, 0.1
"""Seconds between two looks, far from the limit and near it."""
_GROWTH = 2 << 30
"""Bytes a second that one core can fill."""
_SHARE = 150
"""A look may take one part in this many of a core's time ..."""
_LONGEST = 2.0
"""... unless it would be this many seconds until the next one."""
_NEAR = 0.9
"""The part of all memory from which on a kernel that was killed was killed for it."""


class Monitor:
    """Looks at the tree of process `pid` while it is entered, and adds to `usage`.

    `over` is set when the tree uses more than `limit` bytes (None: as much as it likes); `used` is
    what it used when we last looked. `environ` is the kernel's environment, which says what GPUs it
    sees.
    """

    def __init__(
        self, pid: int, limit: int | None, usage: Usage, environ: Mapping[str, str]
    ) -> None:
        self.over = asyncio.Event()
        self.used = 0
        self.limit = limit
        self._pid = pid
        self._usage = usage
        self._meter = Meter(pid)
        self._environ = environ
        self._ceiling = host_memory.effective_limit(limit)
        self._kills = host_memory.OomKillCounter(pid)
        self._loop = asyncio.get_running_loop()
        self._exact_due = float("-inf")
        self._done = threading.Event()
        self._pids: tuple[int, ...] = (pid,)

    def __enter__(self) -> Monitor:
        self._usage.begin(self._meter)
        # Daemons: a driver or a process that hangs is not waited for.
        for work in (self._watch_processes, self._watch_gpus):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._usage.close()

    def figures(self) -> host_memory.MemoryStatus:
        """Return how the run stands with memory, and whether the host killed in it for that."""
        kills = self._kills.count(self._pids)
        used = max(self.used, self._usage.highest_memory())
        if kills and self._kills.alone:  # then the group was full, however little we saw of that
            used = max(used, min(host_memory.peak() or 0, self._ceiling))
        near = self.used >= _NEAR * self._ceiling
        return host_memory.MemoryStatus(used, self._ceiling, kills, near)

    def _watch_processes(self) -> None:
        while not self._done.is_set():
            began = time.thread_time()
            tree = measure(self._pid, exact=self._is_worth_it)
            cost = time.thread_time() - began
            if tree is None:
                return
            # With its moment: the loop may take it late.
            self._hand_over(partial(self._take, tree, time.monotonic()))
            if tree.exact:
                self._exact_due = time.monotonic() + max(_SLOWEST, _SHARE * cost)
            room = self._ceiling - tree.memory
            pause = min(max(room / _GROWTH, _FASTEST), _SLOWEST)
            self._done.wait(max(pause, min(_SHARE * cost, _LONGEST)))

    def _is_worth_it(self, bound: int) -> bool:
        """Tell whether the exact size of several processes is needed: now and then, or to judge."""
        return bound >= _NEAR * self._ceiling or time.monotonic() >= self._exact_due

    def _take(self, tree: TreeUsage, moment: float) -> None:
        if self._done.is_set():  # the receipt is closed
            return
        self._kills.count(self._pids)
        self._pids = tree.pids
        self._meter.follow(tree.pids)
        self._usage.add_cpu(tree.cpu_seconds, moment)
        if not tree.exact:
            return
        self._usage.add_memory(tree.memory)
        if self.over.is_set():
            return
        self.used = tree.memory
        if self.limit is not None and self.used > self.limit:
            self.over.set()

    def _watch_gpus(self) -> None:
        read = gpu.open_nvml(self._environ)
        while read is not None and not self._done.is_set():
            self._hand_over(partial(self._take_gpus, read(self._pids)))
            self._done.wait(_SLOWEST)

    def _take_gpus(self, seen: gpu.GpuSample) -> None:
        if not self._done.is_set():
            self._usage.add_gpus(seen.memory, seen.utilisation)

    def _hand_over(self, take: Callable[[], None]) -> None:
        """Have the loop take what a thread saw; none is needed once the loop is gone."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(take)
