"""`results`: the runs of a group side by side, as a table, CSV, Parquet or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from job_runner.protocol.units import format_bytes, format_duration

from ...domain.errors import BadInput
from ...domain.results import ResultColumn, Results, results_of
from ...service.result_files import to_csv, to_parquet
from .. import options, selection, session
from ..display import output

if TYPE_CHECKING:
    from ...domain.job import Job

_SHOWN_ALWAYS = ("job",)
_NEVER_SHOWN = ("notebook", "result")
"""Columns of the table on a terminal; the others are shown if the jobs differ in them."""


@click.command("results")
@options.JOBS
@options.GROUP
@options.with_options(
    click.option("--sort", metavar="COLUMN", help="Smallest first; max:COLUMN: largest first."),
    click.option("--best", metavar="max:COLUMN", help="Mark the best run; or min:COLUMN."),
    click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all columns."),
    click.option("--parquet", metavar="FILE", type=options.FilePath(),
                 help="Write a Parquet file, with all columns."),
    options.AS_JSON,
)  # fmt: skip
def results_command(
    *,
    jobs: tuple[str, ...],
    group: str | None,
    sort: str | None,
    best: str | None,
    as_csv: bool,
    parquet: Path | None,
    as_json: bool,
) -> None:
    """Compare jobs: parameters, metrics, time, memory, GPU use and results, a row for each job.

    JOB is a name or a pattern in quotes. The table has the parameters in which the jobs differ.
    Metrics are what the notebooks recorded. A failure that was run again is left out.
    """
    results = results_of(_find(jobs, group))
    if sort is not None:
        descending = sort.startswith("max:")
        name = sort.partition(":")[2] if sort.startswith(("max:", "min:")) else sort
        results = results.sorted_by(name, descending=descending)
    winner = results.best(best) if best is not None else None
    if parquet is not None:
        _write(parquet, to_parquet(results))
    if as_json:
        output.print_json({**results.to_json(), **({} if best is None else {"best": winner})})
    elif as_csv:
        output.write(to_csv(results))
    elif parquet is None:
        _print_table(results, winner)


def _find(arguments: tuple[str, ...], group: str | None) -> list[Job]:
    service = session.connect()
    if group is not None or (arguments and all(map(selection.is_pattern, arguments))):
        return selection.find_matching(service, arguments, group)
    names = selection.select_names(service, arguments, group)
    return [session.with_name_hint(service, name, service.get) for name in names]


def _write(path: Path, content: bytes) -> None:
    """Write a file that the user has named. Raises BadInput."""
    try:
        path.write_bytes(content)
    except OSError as error:
        hint = "Name a file that can be written."
        raise BadInput(f"Cannot write {path}: {error.strerror}.", hint) from error


def _print_table(results: Results, best: str | None) -> None:
    from ..display import tables

    visible = [column for column in results.columns if _is_shown(column)]
    columns = [tables.Column("", ["*" if job == best else "" for job in results.jobs])]
    for position, column in enumerate(visible):
        texts = [_text(column, value) for value in column.values]
        drop = len(visible) - position if column.kind == "usage" else 0
        columns.append(tables.Column(column.name, texts, drop=drop, min_width=8))
    tables.print_table(columns)


def _is_shown(column: ResultColumn) -> bool:
    if column.name in _NEVER_SHOWN:
        return False
    is_always = column.name in _SHOWN_ALWAYS or column.kind in ("metric", "usage")
    return is_always or column.differs


def _text(column: ResultColumn, value: Any) -> str:
    """Return a value as the table shows it."""
    if value is None:
        return ""
    if column.kind == "usage" and column.name == "seconds":
        return format_duration(value)
    if column.kind == "usage" and column.name.startswith(("memory", "gpu_memory")):
        return format_bytes(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
