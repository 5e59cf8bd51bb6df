"""The results of many jobs side by side: what was asked for, what came out, and what it took.

Everybody who compares runs reads this table: the terminal, CSV, Parquet, pandas and the browser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from job_runner.protocol import times
from job_runner.protocol.fields import MAX_NUMBER

from .errors import BadInput
from .job import Job, State
from .suggestions import did_you_mean


@dataclass(frozen=True)
class ResultColumn:
    """One column. `kind` is `job`, `parameter`, `metric` or `usage`: what it tells of a job.

    Values have one type: numbers, true or false, or text; None where a job has none. Of a picture
    it is the MIME type. `field` is the parameter's or metric's own name, which `name` is not where
    another column has it. `pictures`: the metric is a picture in one of the jobs at least.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    field: str = ""
    pictures: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no job has a value. Where every column needs a type it is one of numbers then."""
        return all(value is None for value in self.values)

    @cached_property
    def differs(self) -> bool:
        """Whether two jobs differ in it."""
        return len(set(self.values)) > 1


@dataclass(frozen=True)
class Results:
    """The table: a row for each job, in the order of their submission unless it is sorted."""

    columns: tuple[ResultColumn, ...]

    @property
    def jobs(self) -> Sequence[str]:
        """The names of the jobs, row by row."""
        return self.columns[0].values

    def column(self, name: str) -> ResultColumn:
        """Return the column of a name. Raises BadInput."""
        for column in self.columns:
            if column.name == name:
                return column
        hint = did_you_mean(name, [column.name for column in self.columns])
        raise BadInput(f"There is no column {name!r}.", hint)

    def sorted_by(self, name: str, *, descending: bool = False) -> Results:
        """Return the table sorted by a column; jobs without a value come last. Raises BadInput."""
        values = self.column(name).values
        rows_with_value = [row for row, value in enumerate(values) if value is not None]
        rows_with_value.sort(key=lambda row: values[row], reverse=descending)
        order = rows_with_value + [row for row, value in enumerate(values) if value is None]
        return Results(
            tuple(replace(c, values=tuple(c.values[row] for row in order)) for c in self.columns)
        )

    def best(self, choice: str) -> str | None:
        """Return the job with the best value, `max:COLUMN` or `min:COLUMN`; None if none has one.

        Raises BadInput.
        """
        goal, _, name = choice.partition(":")
        pick = {"max": max, "min": min}.get(goal)
        if pick is None or not name:
            raise BadInput(f"{choice!r} names no best run.", "Write max:COLUMN or min:COLUMN.")
        column = self.column(name)
        if any(isinstance(value, str) for value in column.values):
            raise BadInput(f"{name} has text, of which none is the best.", "Name a number.")
        candidates = [
            (v, job) for v, job in zip(column.values, self.jobs, strict=True) if v is not None
        ]
        return pick(candidates, key=lambda pair: pair[0])[1] if candidates else None

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain JSON types, with a row as an object."""
        names = [column.name for column in self.columns]
        rows = zip(*(column.values for column in self.columns), strict=True)
        return {
            "columns": [
                {
                    "name": c.name,
                    "kind": c.kind,
                    "differs": c.differs,
                    "field": c.field or c.name,
                    "pictures": c.pictures,
                }
                for c in self.columns
            ],
            "rows": [dict(zip(names, row, strict=True)) for row in rows],
        }


def standing(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs in the order of their submission, without failures that were run again."""
    all_jobs = list(jobs)
    rerun = {job.rerun_of for job in all_jobs}
    lost = (State.FAILED, State.CANCELLED)
    stand = [job for job in all_jobs if job.state not in lost or job.name not in rerun]
    return sorted(stand, key=lambda job: (job.submitted or "", job.name))


def results_of(jobs: Iterable[Job]) -> Results:
    """Return the table of some jobs; one that failed and was run again is left out."""
    rows = standing(jobs)
    columns = [_column(name, "job", map(read, rows)) for name, read in _LEADING_COLUMNS.items()]
    titles = {*_LEADING_COLUMNS, *_TRAILING_COLUMNS}
    for kind, values_of in (("parameter", _parameters_of), ("metric", _metrics_of)):
        values = [values_of(job) for job in rows]
        for name in dict.fromkeys(name for row_values in values for name in row_values):
            title = name
            while title in titles:  # a notebook may call them as it likes
                title = f"{kind}.{title}"
            titles.add(title)
            column = _column(title, kind, (row_values.get(name) for row_values in values))
            pictures = kind == "metric" and any(_shows_picture(job, name) for job in rows)
            columns.append(replace(column, field=name, pictures=pictures))
    columns += [_column(name, "usage", map(read, rows)) for name, read in _TRAILING_COLUMNS.items()]
    return Results(tuple(columns))


def elapsed(job: Job) -> float | None:
    """Return the seconds that an ended job ran; None if they are unknown."""
    if job.started is None or job.finished is None:
        return None
    seconds = (times.parse(job.finished) - times.parse(job.started)).total_seconds()
    return round(max(seconds, 0.0), 3)


def _usage(name: str) -> Callable[[Job], Any]:
    return lambda job: (job.usage or {}).get(name)


_LEADING_COLUMNS: dict[str, Callable[[Job], Any]] = {
    "job": lambda job: job.name,
    "notebook": lambda job: job.notebook,
    "flavor": lambda job: job.flavor,
    "device": lambda job: job.device,
    "state": lambda job: job.state.value,
}
_TRAILING_COLUMNS: dict[str, Callable[[Job], Any]] = {
    "seconds": elapsed,
    "memory_peak": _usage("memory_peak"),
    "cpu_mean": _usage("cpu_mean"),
    "gpu_utilisation_mean": _usage("gpu_utilisation_mean"),
    "gpu_memory_peak": _usage("gpu_memory_peak"),
    "result": lambda job: job.delivery.path,
}


def _parameters_of(job: Job) -> dict[str, Any]:
    return job.parameters


def _metrics_of(job: Job) -> dict[str, Any]:
    metrics = job.metrics or {}
    return {name: metric.picture or metric.value for name, metric in metrics.items()}


def _shows_picture(job: Job, name: str) -> bool:
    metric = (job.metrics or {}).get(name)
    return metric is not None and metric.picture is not None


def _column(name: str, kind: str, values: Iterable[Any]) -> ResultColumn:
    """Return a column whose values have one type: what is of several types becomes text."""
    cells = list(values)
    types = {_type_of(value) for value in cells if value is not None}
    if types == {int, float}:
        cells = [None if value is None else float(value) for value in cells]
    elif not (len(types) == 1 and types <= {int, float, bool}):
        cells = [_text(value) for value in cells]
    return ResultColumn(name, kind, tuple(cells))


def _type_of(value: Any) -> type:
    """Return the type by which a value is compared; of an integer that is no `int64`, text."""
    return str if type(value) is int and abs(value) >= MAX_NUMBER else type(value)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
