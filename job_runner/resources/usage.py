"""What a run and each of its cells used, from samples: the receipt. Unknown is null, never 0.

The monitor adds what it sees once a second or so. What a shorter cell used is read when it begins
and when it ends. All of it happens on the loop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from .meter import Meter, Reading

_WINDOW = 0.5
"""Seconds at least that a peak of CPU lasts: /proc counts in hundredths."""
_SAMPLE_TTL = 0.001
"""Seconds for which a reading counts as now: a cell begins when the one before it has ended."""


@dataclass
class _Series:
    """Peak and mean of something that is sampled; `None` without a sample."""

    count: int = 0
    total: float = 0.0
    peak: float | None = None

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.touch(value)

    def touch(self, value: float) -> None:
        """Take a value that was seen at some other moment than samples are taken."""
        self.peak = value if self.peak is None else max(self.peak, value)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class _Cell:
    """A cell that runs: what had been used when it began, and what was seen since."""

    began: float
    before: Reading | None
    memory: _Series = field(default_factory=_Series)
    gpu_memory: _Series = field(default_factory=_Series)
    gpu_utilisation: _Series = field(default_factory=_Series)


@dataclass
class Usage:
    """Peaks and means of the kernel's process tree and of the GPUs that it sees.

    Memory in bytes, CPU in cores, utilisation of GPUs from 0 to 1 (of all of them together).
    """

    memory: _Series = field(default_factory=_Series)
    gpu_memory: _Series = field(default_factory=_Series)
    gpu_utilisation: _Series = field(default_factory=_Series)
    cpu_peak: float | None = None
    _meter: Meter | None = None
    _began: float | None = None
    _wall: float | None = None
    _cell: _Cell | None = None
    _first_look: tuple[float, float] | None = None
    _window: tuple[float, float] | None = None
    _last_look: tuple[float, float] | None = None
    _reading: tuple[Reading | None, float] = (None, float("-inf"))

    def begin(self, meter: Meter) -> None:
        """Begin with a kernel that was just started."""
        self._meter, self._began = meter, time.monotonic()
        self._look()

    def close(self) -> None:
        """Look a last time, at a kernel that is about to end: later than this nothing counts."""
        if self._began is not None and self._meter is not None:
            self._look()
            self._wall = time.monotonic() - self._began
            self._meter = None

    def begin_cell(self) -> None:
        """Begin the receipt of a cell."""
        reading, moment = self._look()
        self._cell = _Cell(moment, reading)
        if reading is not None and reading.memory:
            self._cell.memory.touch(reading.memory)

    def end_cell(self) -> dict[str, Any]:
        """Return the receipt of the cell that has ended: seconds, bytes, and utilisation 0 to 1."""
        reading, moment = self._look()
        cell = self._cell or _Cell(moment, reading)
        self._cell = None
        cpu = None
        if reading is not None:
            if reading.memory:
                cell.memory.touch(reading.memory)
            if cell.before is not None:
                # Children that ended unawaited take their seconds with them.
                cpu = max(0.0, reading.cpu_seconds - cell.before.cpu_seconds)
                if reading.highest > cell.before.highest:
                    cell.memory.touch(reading.highest)
        return {
            "wall": round(moment - cell.began, 6),
            "cpu": _rounded(cpu, 6),
            "memory_peak": _whole(cell.memory.peak),
            "gpu_utilisation": _rounded(cell.gpu_utilisation.mean),
            "gpu_memory_peak": _whole(cell.gpu_memory.peak),
        }

    def add_memory(self, amount: int) -> None:
        """Take the bytes that all processes have."""
        self.memory.add(amount)
        if self._cell is not None:
            self._cell.memory.add(amount)

    def add_cpu(self, cpu_seconds: float, moment: float) -> None:
        """Take the CPU seconds used until `moment`, in seconds of a clock that never goes back."""
        if self._first_look is None or self._last_look is None or self._window is None:
            self._first_look = self._window = self._last_look = (cpu_seconds, moment)
            return
        # Children that ended unawaited take their seconds with them.
        look = (max(self._last_look[0], cpu_seconds), max(self._last_look[1], moment))
        self._last_look = look
        if look[1] - self._window[1] >= _WINDOW:
            self.cpu_peak = max(self.cpu_peak or 0.0, _cores(self._window, look) or 0.0)
            self._window = look

    def add_gpus(self, memory: int | None, utilisation: float | None) -> None:
        """Take the bytes on all GPUs and how busy they are; None: not known."""
        for receipt in (self, self._cell):
            if receipt is not None and memory is not None:
                receipt.gpu_memory.add(memory)
            if receipt is not None and utilisation is not None:
                receipt.gpu_utilisation.add(utilisation)

    def highest_memory(self) -> int:
        """Look once more, and return the most bytes so far; 0 where nothing tells."""
        self._look()
        return int(self.memory.peak or 0)

    def to_json(self) -> dict[str, Any]:
        """Return the receipt for outcome.json."""
        mean = _cores(self._first_look, self._last_look)
        # A run, or its busy end, may be shorter than a peak has to last.
        peak = mean if self.cpu_peak is None or mean is None else max(self.cpu_peak, mean)
        wall = self._wall
        if wall is None and self._began is not None:
            wall = time.monotonic() - self._began
        return {
            "wall": _rounded(wall),
            "cpu_seconds": None if self._last_look is None else round(self._last_look[0], 3),
            "memory_peak": _whole(self.memory.peak),
            "memory_mean": _whole(self.memory.mean),
            "cpu_peak": _rounded(peak),
            "cpu_mean": _rounded(mean),
            "gpu_memory_peak": _whole(self.gpu_memory.peak),
            "gpu_memory_mean": _whole(self.gpu_memory.mean),
            "gpu_utilisation_peak": _rounded(self.gpu_utilisation.peak),
            "gpu_utilisation_mean": _rounded(self.gpu_utilisation.mean),
        }

    def _look(self) -> tuple[Reading | None, float]:
        """Read the meter, unless that was done just now; return what it says, and when."""
        now = time.monotonic()
        if now - self._reading[1] > _SAMPLE_TTL:
            reading = None if self._meter is None else self._meter.read()
            self._reading = (reading, now)
            if reading is not None:
                self.add_cpu(reading.cpu_seconds, now)
                if reading.highest or reading.memory:
                    self.memory.touch(max(reading.highest, reading.memory))
        return self._reading[0], now


def _cores(earlier: tuple[float, float] | None, later: tuple[float, float] | None) -> float | None:
    """Return the cores that were busy between two looks; None if they are the same one."""
    if earlier is None or later is None or later[1] <= earlier[1]:
        return None
    return (later[0] - earlier[0]) / (later[1] - earlier[1])


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
