"""The table of results as a file: CSV and Parquet, for the command line and for downloads."""

from __future__ import annotations

import csv
import io
from typing import Any

from ..domain.errors import BadInput
from ..domain.results import Results


def to_csv(results: Results) -> str:
    """Return the table as CSV: a value that is missing is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in results.columns])
    writer.writerows(zip(*(column.values for column in results.columns), strict=True))
    return text.getvalue()


def to_parquet(results: Results) -> bytes:
    """Return the table as Parquet. Raises BadInput where pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput(
            "Parquet needs pyarrow, which is not installed.",
            "Install it with: pip install 'jupyter-to-job[results]'",
        ) from error
    arrays = []
    for column in results.columns:
        try:
            kind = pyarrow.float64() if column.is_empty else None
            arrays.append(pyarrow.array(column.values, kind))
        except (pyarrow.ArrowException, ValueError, OverflowError):  # no type of Parquet has them
            arrays.append(pyarrow.array(map(_text, column.values), pyarrow.string()))
    table = pyarrow.table(arrays, names=[_text(column.name) for column in results.columns])
    data = io.BytesIO()
    pyarrow.parquet.write_table(table, data)
    return data.getvalue()


def _text(value: Any) -> str | None:
    """Return a value as text, without the lone surrogates that JSON may have and UTF-8 has not."""
    return None if value is None else str(value).encode(errors="replace").decode()
