"""What a run and each of its cells used: the usage record. Unknown is null, never 0.

The monitor adds samples about once a second. For cells that are shorter the kernel is read when a
cell begins and when it ends. All of it happens on the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_CPU_WINDOW = 0.5
"""A peak of CPU lasts at least this many seconds: /proc counts in hundredths."""


@dataclass(frozen=True)
class Reading:
    """CPU seconds of all processes; of the kernel itself the bytes now, and the most so far.

    `memory` is 0 for a process that has ended, and leaves out the pages of mapped files.
    `peak_resident` includes them; it is 0 where the system does not record it.
    """

    cpu_seconds: float
    memory: int
    peak_resident: int
    file_memory: int = 0


ReadKernel = Callable[[], Reading | None]


@dataclass
class _Series:
    """Peak and mean of a sampled value; None without a sample."""

    count: int = 0
    total: float = 0.0
    peak: float | None = None

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.raise_peak(value)

    def raise_peak(self, value: float) -> None:
        """Count a value for the peak only, because no sample was due."""
        self.peak = value if self.peak is None else max(self.peak, value)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class _Samples:
    """The samples of a run, or of a cell."""

    memory: _Series = field(default_factory=_Series)
    gpu_memory: _Series = field(default_factory=_Series)
    gpu_utilisation: _Series = field(default_factory=_Series)


@dataclass
class _Cell(_Samples):
    """The running cell: when it began, the reading at that time, and the samples since."""

    start_reading: Reading | None = None
    start_time: float = field(default_factory=time.monotonic)


@dataclass
class Usage(_Samples):
    """Peaks and means of the kernel's process tree and of the GPUs that it sees.

    Memory in bytes, CPU in cores, utilisation of GPUs from 0 to 1 (of all of them together).
    """

    cpu_peak: float | None = None
    _read: ReadKernel | None = None
    _start_time: float | None = None
    _end_time: float | None = None
    _cell: _Cell | None = None
    _last_reading: Reading = Reading(0.0, 0, 0)
    _first_sample: tuple[float, float] | None = None
    _window_start: tuple[float, float] | None = None
    _last_sample: tuple[float, float] | None = None

    def begin(self, read_kernel: ReadKernel) -> None:
        """Begin the record of a kernel that was just started."""
        self._read, self._start_time = read_kernel, time.monotonic()
        self._sample()

    def close(self) -> None:
        """Take the last sample of a kernel that is about to end; nothing counts afterwards."""
        if self._read is not None:
            self._sample()
            self._read, self._end_time = None, time.monotonic()

    def begin_cell(self) -> None:
        """Begin the record of a cell."""
        reading = self._sample()
        self._cell = _Cell(start_reading=reading)
        if reading is not None and reading.memory:
            self._cell.memory.raise_peak(reading.memory)

    def end_cell(self) -> dict[str, Any]:
        """Return the record of the ended cell: seconds, bytes, and utilisation from 0 to 1."""
        reading, cell, cpu = self._sample(), self._cell or _Cell(), None
        self._cell = None
        if reading is not None and cell.start_reading is not None:
            # The seconds of children that nobody waited for are lost.
            cpu = max(0.0, reading.cpu_seconds - cell.start_reading.cpu_seconds)
        return {
            "wall": round(time.monotonic() - cell.start_time, 6),
            "cpu": _rounded(cpu, 6),
            "memory_peak": _as_int(cell.memory.peak),
            "gpu_utilisation": _rounded(cell.gpu_utilisation.mean),
            "gpu_memory_peak": _as_int(cell.gpu_memory.peak),
        }

    def add_memory(self, amount: int) -> None:
        """Add a sample of the bytes of all processes."""
        for samples in self._current_samples():
            samples.memory.add(amount)

    def add_cpu(self, cpu_seconds: float, moment: float) -> None:
        """Add a sample of the CPU seconds used until `moment`, in seconds of a monotonic clock."""
        if self._first_sample is None or self._last_sample is None or self._window_start is None:
            self._first_sample = self._window_start = self._last_sample = (cpu_seconds, moment)
            return
        # The seconds of children that nobody waited for are lost.
        sample = (max(self._last_sample[0], cpu_seconds), max(self._last_sample[1], moment))
        self._last_sample = sample
        if sample[1] - self._window_start[1] >= _CPU_WINDOW:
            self.cpu_peak = max(self.cpu_peak or 0.0, _cores(self._window_start, sample) or 0.0)
            self._window_start = sample

    def add_gpus(self, memory: int | None, utilisation: float | None) -> None:
        """Add a sample of the bytes on all GPUs and of their utilisation; None is unknown."""
        for samples in self._current_samples():
            if memory is not None:
                samples.gpu_memory.add(memory)
            if utilisation is not None:
                samples.gpu_utilisation.add(utilisation)

    def peak_memory(self) -> int:
        """Take a sample, and return the most bytes so far; 0 where they are unknown."""
        self._sample()
        return int(self.memory.peak or 0)

    def to_json(self) -> dict[str, Any]:
        """Return the usage record for outcome.json."""
        mean = _cores(self._first_sample, self._last_sample)
        # A run shorter than the window has no measured peak; use the mean.
        peak = mean if self.cpu_peak is None or mean is None else max(self.cpu_peak, mean)
        wall = None
        if self._start_time is not None:
            wall = (self._end_time or time.monotonic()) - self._start_time
        return {
            "wall": _rounded(wall),
            "cpu_seconds": None if self._last_sample is None else round(self._last_sample[0], 3),
            "memory_peak": _as_int(self.memory.peak),
            "memory_mean": _as_int(self.memory.mean),
            "cpu_peak": _rounded(peak),
            "cpu_mean": _rounded(mean),
            "gpu_memory_peak": _as_int(self.gpu_memory.peak),
            "gpu_memory_mean": _as_int(self.gpu_memory.mean),
            "gpu_utilisation_peak": _rounded(self.gpu_utilisation.peak),
            "gpu_utilisation_mean": _rounded(self.gpu_utilisation.mean),
        }

    def _current_samples(self) -> list[_Samples]:
        return [self] if self._cell is None else [self, self._cell]

    def _sample(self) -> Reading | None:
        """Read the kernel, if it is there, and return the reading."""
        reading = None if self._read is None else self._read()
        if reading is not None:
            self.add_cpu(reading.cpu_seconds, time.monotonic())
            amount = max(reading.memory, _peak_between(self._last_reading, reading))
            self._last_reading = reading
            for samples in self._current_samples():
                if amount:
                    samples.memory.raise_peak(amount)
        return reading


def _peak_between(previous: Reading, reading: Reading) -> int:
    """Return the most memory between two readings without mapped files, as far as it is known.

    It is known if there was more resident memory than ever before. That includes the pages of
    files, of which there were about as many as at one of the readings.
    """
    if reading.peak_resident <= previous.peak_resident:
        return 0
    return reading.peak_resident - max(previous.file_memory, reading.file_memory)


def _cores(start: tuple[float, float] | None, end: tuple[float, float] | None) -> float | None:
    """Return the mean of busy cores between two samples; None if they are the same one."""
    if start is None or end is None or end[1] <= start[1]:
        return None
    return (end[0] - start[0]) / (end[1] - start[1])


def _as_int(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
