"""The figures of usage records that this version knows: a newer runner's may be of any shape.

Readers check and keep the figures that are named here, and ignore all others.
"""

from __future__ import annotations

from typing import Any

OF_RUN = (
    "wall",
    "cpu_seconds",
    "memory_peak",
    "memory_mean",
    "cpu_peak",
    "cpu_mean",
    "gpu_memory_peak",
    "gpu_memory_mean",
    "gpu_utilisation_peak",
    "gpu_utilisation_mean",
)
OF_CELL = ("wall", "cpu", "memory_peak", "gpu_utilisation", "gpu_memory_peak")


def figures_of_run(record: dict[str, Any]) -> dict[str, Any]:
    """Return the known figures of a run's usage."""
    return {name: record[name] for name in OF_RUN if name in record}


def figures_of_cell(record: dict[str, Any]) -> dict[str, Any]:
    """Return the known figures of a cell's usage."""
    return {name: record[name] for name in OF_CELL if name in record}
