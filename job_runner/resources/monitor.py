"""Samples what a kernel and its processes use, for the usage record and the memory limit.

A thread of its own does it, because reading a process may block. It samples as often as the free
memory may be used up: ten times a second at most, and less often where sampling is expensive. So
does another one with the GPUs, four times a second: the driver itself looks five times.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from . import gpu, host_memory
from .process_tree import TreeUsage, measure, read_kernel
from .usage import Usage

_MAX_INTERVAL, _MIN_INTERVAL = 1.0, 0.1
"""Seconds between two samples, far from the limit and near it."""
_GPU_INTERVAL = 0.25
"""Seconds between two samples of the GPUs, so that work of half a second is not missed."""
_MAX_GROWTH = 2 << 30
"""Bytes a second that one core can fill."""
_COST_DIVISOR = 150
"""A sample may take 1/N of a core's time ..."""
_MAX_COST_INTERVAL = 2.0
"""... unless the next one would come later than after this many seconds."""
_NEAR_LIMIT = 0.9
"""The part of all memory from which on a killed kernel counts as killed for memory."""


class Monitor:
    """Samples the tree of process `pid` while the context is entered, and adds to `usage`.

    `over` is set when the tree uses more than `limit` bytes; None is no limit. `used` are the bytes
    of the last sample. `environ` is the kernel's environment, which says what GPUs it sees.
    """

    def __init__(
        self, pid: int, limit: int | None, usage: Usage, environ: Mapping[str, str]
    ) -> None:
        self.over = asyncio.Event()
        self.used = 0
        self.limit = limit
        self._pid = pid
        self._usage = usage
        self._environ = environ
        self._effective_limit = host_memory.effective_limit(limit)
        self._kills = host_memory.OomKillCounter(pid)
        self._loop = asyncio.get_running_loop()
        self._exact_due = float("-inf")
        self._closed = threading.Event()
        self._pids: tuple[int, ...] = (pid,)

    def __enter__(self) -> Monitor:
        self._usage.begin(lambda: read_kernel(self._pid, self._pids[1:]))
        # Daemon threads, because a driver or a process may hang.
        for work in (self._watch_processes, self._watch_gpus):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._usage.close()

    def memory_status(self) -> host_memory.MemoryStatus:
        """Return how the run stands with memory, and how many processes were killed for it."""
        kills = self._kills.count(self._pids)
        used = max(self.used, self._usage.peak_memory())
        if kills and self._kills.alone:  # the group was full, whatever the last sample says
            used = max(used, min(host_memory.peak() or 0, self._effective_limit))
        near_limit = self.used >= _NEAR_LIMIT * self._effective_limit
        return host_memory.MemoryStatus(used, self._effective_limit, kills, near_limit)

    def _watch_processes(self) -> None:
        while not self._closed.is_set():
            begin = time.thread_time()
            tree = measure(self._pid, exact=self._needs_exact)
            cost = time.thread_time() - begin
            if tree is None:
                return
            # The time goes with it, because the loop may be late.
            self._call_in_loop(partial(self._add_tree, tree, time.monotonic()))
            if tree.exact:
                self._exact_due = time.monotonic() + max(_MAX_INTERVAL, _COST_DIVISOR * cost)
            free = self._effective_limit - tree.memory
            interval = min(max(free / _MAX_GROWTH, _MIN_INTERVAL), _MAX_INTERVAL)
            self._closed.wait(max(interval, min(_COST_DIVISOR * cost, _MAX_COST_INTERVAL)))

    def _needs_exact(self, upper_bound: int) -> bool:
        """Tell whether the exact size of several processes is needed, which costs time."""
        return (
            upper_bound >= _NEAR_LIMIT * self._effective_limit
            or time.monotonic() >= self._exact_due
        )

    def _add_tree(self, tree: TreeUsage, moment: float) -> None:
        if self._closed.is_set():  # the usage record is complete
            return
        self._kills.count(self._pids)
        self._pids = tree.pids
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
        start, start_cpu = time.monotonic(), time.thread_time()
        while read is not None and not self._closed.is_set():
            self._call_in_loop(partial(self._add_gpus, read(self._pids)))
            cost, elapsed = time.thread_time() - start_cpu, time.monotonic() - start
            self._closed.wait(gpu_pause(cost, elapsed))

    def _add_gpus(self, sample: gpu.GpuSample) -> None:
        if not self._closed.is_set():
            self._usage.add_gpus(sample.memory, sample.utilisation)

    def _call_in_loop(self, callback: Callable[[], None]) -> None:
        """Have the loop run `callback`. Once the loop is closed nobody needs it any more."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)


def gpu_pause(cost: float, elapsed: float) -> float:
    """Return the seconds until the next sample of the GPUs, after `cost` CPU seconds of `elapsed`.

    All samples together count, because a driver is slow once in a while: a pause after each slow
    sample would be a gap in which work is missed.
    """
    return max(_GPU_INTERVAL, min(_COST_DIVISOR * cost - elapsed, _MAX_COST_INTERVAL))
