"""Answers with the results of a group, as JSON or as a file, and with a picture among them."""

from __future__ import annotations

from ..domain.errors import BadInput
from ..domain.results import Results
from ..service.pictures import Picture
from ..service.result_files import to_csv, to_parquet
from .http import ApiResponse

_CSV = "text/csv; charset=utf-8"
_PARQUET = "application/vnd.apache.parquet"
_INERT = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
"""The policy of a picture: a notebook made it, and an SVG may hold a script."""


def results_response(results: Results, group: str, format_name: str) -> ApiResponse:
    """Return the table as `json`, `csv` or `parquet`. Raises BadInput."""
    if format_name == "json":
        return ApiResponse.json(200, results.to_json())
    if format_name == "csv":
        return _file(to_csv(results).encode(errors="replace"), _CSV, f"{group}.csv")
    if format_name == "parquet":
        return _file(to_parquet(results), _PARQUET, f"{group}.parquet")
    raise BadInput("format is json, csv or parquet.")


def picture_response(picture: Picture) -> ApiResponse:
    """Return a picture that shows itself and does nothing else, wherever it is opened."""
    headers = {"Content-Security-Policy": _INERT, "X-Content-Type-Options": "nosniff"}
    return ApiResponse(200, picture.data, picture.kind, headers)


def _file(data: bytes, content_type: str, name: str) -> ApiResponse:
    """Return a file to download; a group's name has no characters that a header would mind."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return ApiResponse(200, data, content_type, headers)
