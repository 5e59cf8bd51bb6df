"""The runs of a sweep, from the options of `submit` and the rows of a file of parameters."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from job_runner.protocol.parameters import NotRepresentable, parse_value

from ...domain.errors import BadInput
from ...domain.sweep import Axis, Run, combine, zip_together
from .parameters import collect_parameters, read_text, read_yaml, too_deep

_WAYS = {"sweep": combine, "grid": combine, "zip": zip_together}


class Sweep(NamedTuple):
    """What all runs have in common, what each has of its own, and the axes that made them."""

    constants: dict[str, Any]
    runs: list[Run]
    axes: list[Axis]

    def describe(self) -> list[str]:
        """Return what is varied, and how many values it has: `3 lr`, `2 flavor`."""
        return [f"{len(axis.runs)} {axis.name}" for axis in self.axes if len(axis.runs) > 1]


def collect_sweep(options: dict[str, Any]) -> Sweep | None:
    """Return the sweep that the options ask for; None if they ask for single jobs. Raises BadInput.

    A list of several values is an axis, and a list of one value that value. Without one of
    `--sweep`, `--grid` and `--zip` only the rows of a file are an axis.
    """
    way, file = options["combination"], options["params_file"]
    rows = _rows(file) if file is not None else None
    several = [f"--{kind}" for kind in ("flavor", "device") if len(options[kind]) > 1]
    if way is None and rows is None:
        if several:
            raise BadInput(
                f"{several[0]} was given several times.",
                "Add --grid for all combinations, --sweep if nothing else varies, or --zip.",
            )
        return None
    parameters = collect_parameters(
        None if rows is not None else file,
        options["parsed_parameters"],
        options["text_parameters"],
    )
    axes = [] if rows is None else [Axis(file.name, _without(rows, parameters))]
    varied = {n: v for n, v in parameters.items() if way is not None and isinstance(v, list) and v}
    axes += [Axis(name, [Run({name: v}) for v in values]) for name, values in varied.items()]
    for kind in ("flavor", "device"):
        if options[kind]:
            axes.append(Axis(kind, [Run(**{kind: name}) for name in options[kind]]))
    _check_way(way, axes)
    constants = {name: v for name, v in parameters.items() if name not in varied}
    return Sweep(constants, _WAYS[way or "grid"](axes), axes)


def _without(rows: Sequence[Run], parameters: Mapping[str, Any]) -> list[Run]:
    """Return rows without what the command line sets: that wins over the file."""
    return [Run({n: v for n, v in row.parameters.items() if n not in parameters}) for row in rows]


def _check_way(way: str | None, axes: Sequence[Axis]) -> None:
    """Raise BadInput where the options leave open what is combined with what."""
    several = [axis.name for axis in axes if len(axis.runs) > 1]
    if way == "sweep" and len(several) > 1:
        raise BadInput(
            f"These have several values: {', '.join(several)}.",
            "--grid combines them all, --zip takes the first of each, then the second.",
        )
    if way is not None and not several:
        raise BadInput(
            f"Nothing has several values for --{way}.",
            "Write a list in quotes: -p lr '[0.1, 0.01]'.",
        )
    if way is None and len(several) > 1:
        raise BadInput(
            f"These have several values: {', '.join(several)}.", "Add --grid or --zip to combine."
        )


def _rows(file: Path) -> list[Run] | None:
    """Return the rows of a file of parameters; None if it holds the parameters of one job."""
    try:
        if file.suffix == ".csv":
            rows: Any = _read_csv(read_text(file))
        elif file.suffix in (".jsonl", ".ndjson"):
            # Not splitlines(): texts in JSON may have Unicode's own line ends in them.
            lines = (line for line in read_text(file).split("\n") if line.strip())
            rows = [json.loads(line) for line in lines]
        else:
            rows = read_yaml(file)
    except RecursionError as error:
        raise too_deep(file) from error
    except (ValueError, csv.Error) as error:
        raise BadInput(f"{file} cannot be read as its name says: {error}.") from error
    if not isinstance(rows, list):
        return None
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not all(isinstance(name, str) for name in row):
            raise BadInput(f"{file}: row {number} holds no parameters.", "Write an object each.")
    if not rows:
        raise BadInput(f"{file} has no rows.", "Write one for each job.")
    return [Run(row) for row in rows]


def _read_csv(text: str) -> list[dict[str, Any]]:
    """Return the rows of CSV: values as on the command line; an empty one is not set."""
    reader = csv.DictReader(io.StringIO(text), strict=True)
    rows = []
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"line {reader.line_num} has another number of values than the first")
        try:
            rows.append({name: parse_value(value) for name, value in row.items() if value})
        except NotRepresentable as error:
            raise ValueError(f"line {reader.line_num}: {error}") from error
    return rows
