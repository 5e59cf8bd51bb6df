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
from .parameters import merge_parameters, read_text, read_yaml, require_parameters, too_deep

_WAYS = {"sweep": combine, "grid": combine, "zip": zip_together}


class Sweep(NamedTuple):
    """What each run has of its own, and the axes that made them."""

    runs: list[Run]
    axes: list[Axis]

    def describe(self) -> list[str]:
        """Return what is varied, and how many values it has: `3 lr`, `2 flavor`."""
        return [f"{len(axis.runs)} {axis.name}" for axis in self.axes if len(axis.runs) > 1]


def collect_sweep(options: dict[str, Any]) -> tuple[dict[str, Any], Sweep | None]:
    """Return the parameters that all jobs have in common, and the sweep that the options ask for.

    The sweep is None if they ask for single jobs. A list of several values is an axis, and a list
    of one value that value. Without one of `--sweep`, `--grid` and `--zip` only the rows of a file
    are an axis. Raises BadInput.
    """
    way, file = options["combination"], options["params_file"]
    parameters, rows = ({}, None) if file is None else _read(file)
    several = [f"--{kind}" for kind in ("flavor", "device") if len(options[kind]) > 1]
    is_single = way is None and rows is None
    if is_single and several:
        raise BadInput(
            f"{several[0]} was given several times.",
            "Add --grid for all combinations, --sweep if nothing else varies, or --zip.",
        )
    parameters = merge_parameters(
        parameters, options["parsed_parameters"], options["text_parameters"]
    )
    if is_single:
        return parameters, None
    axes = [] if rows is None else [Axis(file.name, _without(rows, parameters))]
    varied = {n: v for n, v in parameters.items() if way is not None and isinstance(v, list) and v}
    axes += [Axis(name, [Run({name: v}) for v in values]) for name, values in varied.items()]
    for kind in ("flavor", "device"):
        if options[kind]:
            axes.append(Axis(kind, [Run(**{kind: name}) for name in options[kind]]))
    _check_way(way, axes)
    constants = {name: v for name, v in parameters.items() if name not in varied}
    return constants, Sweep(_WAYS[way or "grid"](axes), axes)


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


def _read(file: Path) -> tuple[dict[str, Any], list[Run] | None]:
    """Return the parameters in a file, or its rows. It is read once: it may be a pipe.

    Raises BadInput.
    """
    document = _parse(file)
    if isinstance(document, list):
        return {}, _rows(file, document)
    return require_parameters(file, document), None


def _parse(file: Path) -> Any:
    """Return what a file of parameters holds, by the end of its name. Raises BadInput."""
    try:
        if file.suffix == ".csv":
            return _read_csv(read_text(file))
        if file.suffix in (".jsonl", ".ndjson"):
            # Not splitlines(): texts in JSON may have Unicode's own line ends in them.
            lines = (line for line in read_text(file).split("\n") if line.strip())
            return [json.loads(line) for line in lines]
        return read_yaml(file)
    except RecursionError as error:
        raise too_deep(file) from error
    except (ValueError, csv.Error) as error:
        raise BadInput(f"{file} cannot be read as its name says: {error}.") from error


def _rows(file: Path, rows: Sequence[Any]) -> list[Run]:
    """Return a run for each row of a file of parameters. Raises BadInput."""
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
