"""Answers about one job in detail, and what is made of its notebooks for a browser."""

from __future__ import annotations

import contextlib

from ..domain.errors import BadInput, NoRoute, NotFound
from ..service.difference import compare
from ..service.export import MAX_EXPORT, export_formats, export_notebook
from ..service.port import Jobs
from ..workspace import Workspace
from .http import ApiRequest, ApiResponse
from .ranges import file_response

NOTEBOOK = "application/x-ipynb+json"
_TYPES = {"html": "text/html; charset=utf-8", "pdf": "application/pdf"}
_FLAGS = {"true": True, "false": False}


def answer_record(jobs: Jobs, name: str, workspace: Workspace | None) -> ApiResponse:
    """Return a job's record, with the formats that this process exports to."""
    exports = [] if workspace is None else export_formats()
    return ApiResponse.json(200, {**jobs.files(name).record().to_json(), "exports": exports})


def answer_cells(jobs: Jobs, name: str) -> ApiResponse:
    """Return the receipts of a job's cells."""
    receipts = jobs.files(name).cells()
    return ApiResponse.json(200, {"cells": [receipt.to_json() for receipt in receipts]})


def answer_snapshot(jobs: Jobs, request: ApiRequest, name: str) -> ApiResponse:
    """Return the notebook as it was frozen."""
    file, sha256 = jobs.files(name).snapshot()
    return file_response(request, file, sha256, NOTEBOOK)


def answer_difference(jobs: Jobs, name: str, workspace: Workspace | None) -> ApiResponse:
    """Return what changed in the notebook since. Raises NoRoute where no workspace is seen."""
    notebook = jobs.get(name).notebook
    snapshot = jobs.files(name).snapshot().file
    with snapshot:
        if workspace is None:
            raise NoRoute("A controller does not see the notebook.")
        try:
            current = workspace.open(notebook)
        except OSError as error:
            message = f"{notebook} cannot be read: {error.strerror}."
            raise NotFound(message, "It may have been moved or deleted.") from error
        with current:
            return ApiResponse.json(200, {"notebook": notebook, **compare(snapshot, current)})


def answer_export(
    jobs: Jobs, request: ApiRequest, name: str, workspace: Workspace | None
) -> ApiResponse:
    """Return the result as a document to save. Raises NoRoute where no workspace is seen.

    No browser may show it as a page of this server: it has whatever the notebook printed.
    """
    file_format = request.query.get("format", "html")
    with_code = _FLAGS.get(request.query.get("code", "true"))
    if with_code is None or file_format not in _TYPES:
        raise BadInput("format is html or pdf, and code is true or false.")
    with contextlib.closing(jobs.notebook(name, MAX_EXPORT).file) as notebook:
        if workspace is None:
            raise NoRoute("A controller exports nothing.")
        document = export_notebook(notebook, name, file_format, with_code=with_code)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.{file_format}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return ApiResponse(200, b"", _TYPES[file_format], headers, document)
