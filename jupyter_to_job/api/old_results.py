"""Answers about old results in the workspace, and their removal. A gateway sees no workspace."""

from __future__ import annotations

from ..domain.errors import BadInput, NoRoute
from ..domain.quantities import parse_duration
from ..service.old_results import KEEP, OLDER_THAN, find_old_results, remove_result
from ..service.port import Jobs, all_jobs
from ..workspace import Workspace
from .http import ApiRequest, ApiResponse


def answer_old_results(jobs: Jobs, request: ApiRequest, workspace: Workspace | None) -> ApiResponse:
    """Return the results that a user may want to remove."""
    older_than = request.query.get("older_than", "")
    seconds = 0 if older_than == "0" else parse_duration(older_than or OLDER_THAN)
    keep = request.integer("keep", KEEP)
    if keep < 0:
        raise BadInput("keep is 0 or more.")
    old_results = find_old_results(all_jobs(jobs), _required(workspace), seconds, keep)
    results = [
        {"job": old.job.name, "notebook": old.job.notebook, "path": old.path,
         "size": old.size, "finished": old.job.finished}
        for old in old_results
    ]  # fmt: skip
    return ApiResponse.json(200, {"results": results})


def answer_removal(jobs: Jobs, name: str, workspace: Workspace | None) -> ApiResponse:
    """Remove a job's result from the workspace, and return what was removed."""
    removal = remove_result(jobs, _required(workspace), name)
    body = {"removed": removal.removed, "size": removal.size, "changed": removal.changed}
    return ApiResponse.json(200, body)


def _required(workspace: Workspace | None) -> Workspace:
    if workspace is None:
        raise NoRoute("A controller does not see the results.")
    return workspace
