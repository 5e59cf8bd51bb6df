"""Metrics: what a notebook records about its run, so that many runs can be compared.

A metric is display data in the formats of scrapbook (`glue`) and of older papermill (`record`), or
the value of a cell that is tagged `metric:<name>`. Whatever a notebook prints, what is kept of it
is bounded: the number of metrics, the length of a name, and the bytes of all values.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .parameters import parse_default

Record = dict[str, Any]

SCRAP = "application/scrapbook.scrap.json+json"
"""The MIME type of a value that `glue` records as JSON; text has one of its own."""
_SCRAPS = (SCRAP, "application/scrapbook.scrap.text+json")
_RECORD = "application/papermill.record+json"
_PICTURES = ("image/png", "image/svg+xml", "image/jpeg")
TAG = "metric:"
"""A tag of a cell begins with it: what the cell shows last is the metric of that name."""
MAX_METRICS = 100
MAX_NAME = 100
"""Characters of a metric's name: a metric with a longer one is not kept."""
MAX_BYTES = 16 << 10
"""Bytes of all values of a run as JSON. A value beyond is not kept, and its metric has none."""
_ENCODER = json.JSONEncoder(allow_nan=False)
_MAX_LITERAL = 1000
"""Characters of a shown value that is read as a number; longer ones are text."""
_SCALARS = (
    re.compile(r"\[1\] (.+)"),
    re.compile(r"[\w.]+\((.+)\)", re.ASCII),
    re.compile(r"(?:tensor|Array)\(([^,()]+), \w+=.*\)", re.ASCII | re.DOTALL),
)
"""How R, NumPy and its kin, and PyTorch and JAX show one value: `[1] 0.93`, `np.float64(0.93)`,
`tensor(0.93, device='cuda:0')`."""
_NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)|NA", re.IGNORECASE)
"""What JSON has no number for, and R's missing value."""


@dataclass(frozen=True)
class Metric:
    """One metric: a `value` as JSON, or the MIME type of a `picture`, which the result shows.

    `cell` is the index of the cell that recorded it, among the cells of the prepared notebook.
    """

    value: Any = None
    picture: str | None = None
    cell: int | None = None


class MetricsFold:
    """The metrics of a run, record by record. The last value of a name counts."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self._sizes: dict[str, int] = {}
        self._tagged: dict[int, str] = {}

    def feed(self, record: Record) -> None:
        """Take one more record. An invalid one changes nothing."""
        match record:
            case {"k": "prepared", "notebook": {"cells": list(cells)}}:
                self._tagged = self._tagged or _tagged_cells(cells)
            case {"k": "output", "i": int(cell), "output": {"data": dict(data)} as output}:
                self._feed_display(cell, data, output.get("metadata"))

    def _feed_display(self, cell: int, data: Record, metadata: Any) -> None:
        for kind in _SCRAPS:
            match data.get(kind):
                case {"name": str(name), "data": value}:
                    self._keep(name, Metric(value, None, cell))
        match data.get(_RECORD):
            case dict(values):
                for name, value in list(values.items())[:MAX_METRICS]:
                    self._keep(name, Metric(value, None, cell))
        match metadata:
            case {"scrapbook": {"name": str(name), "display": True}}:
                self._show(name, cell, data)
            case {"papermill": {"name": str(name)}} if _RECORD not in data:
                self._show(name, cell, data)
        if cell in self._tagged:
            self._show(self._tagged[cell], cell, data)

    def _show(self, name: str, cell: int, data: Record) -> None:
        """Keep what an output shows: a picture, or else its text as a number if it is one."""
        picture = next((kind for kind in _PICTURES if kind in data), None)
        if picture is not None:
            self._keep(name, Metric(None, picture, cell))
        elif "text/plain" in data and (name not in self.metrics or cell in self._tagged):
            self._keep(name, Metric(_shown_value(data["text/plain"]), None, cell))

    def _keep(self, name: str, metric: Metric) -> None:
        if not 0 < len(name) <= MAX_NAME:
            return
        if name not in self.metrics and len(self.metrics) >= MAX_METRICS:
            return
        size = _size_of(metric.value)
        if size + sum(self._sizes.values()) - self._sizes.get(name, 0) > MAX_BYTES:
            metric, size = Metric(None, metric.picture, metric.cell), 0
        self.metrics[name], self._sizes[name] = metric, size


def _tagged_cells(cells: list[Any]) -> dict[int, str]:
    """Return the metric's name of each cell that is tagged with one, by the cell's index."""
    tagged: dict[int, str] = {}
    for index, cell in enumerate(cells):
        match cell:
            case {"metadata": {"tags": list(tags)}}:
                names = [t[len(TAG) :] for t in tags if isinstance(t, str) and t.startswith(TAG)]
                if names and len(tagged) < MAX_METRICS:
                    tagged[index] = names[0]
    return tagged


def _shown_value(text: Any) -> Any:
    """Return the number or text that `text/plain` shows; None for what is neither, as NaN."""
    if isinstance(text, list):
        text = "".join(part for part in text if isinstance(part, str))
    if not isinstance(text, str):
        return None
    text = text.strip()
    if len(text) > _MAX_LITERAL:
        return text
    inner = [match[1] for form in _SCALARS if (match := form.fullmatch(text))]
    for source in (text, *inner):
        if _NO_NUMBER.fullmatch(source):
            return None
        value = parse_default(source)
        if isinstance(value, bool | int | float) or (isinstance(value, str) and source == text):
            return value
    return text


def _size_of(value: Any) -> int:
    """Return the bytes of a value as JSON; of a large or unusable one, more than `MAX_BYTES`."""
    size = 0
    try:
        for piece in _ENCODER.iterencode(value):  # it ends early, however much there is
            size += len(piece)
            if size > MAX_BYTES:
                break
    except (ValueError, TypeError, RecursionError):
        return MAX_BYTES + 1
    return size
