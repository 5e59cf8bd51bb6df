"""The table of routes: each calls one use case and makes a response of its result."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .. import __version__
from ..domain.errors import (
    BadInput,
    JobsError,
    NoRoute,
    NotFound,
    PartlySubmitted,
    StorageFull,
    Withdrawn,
    no_group,
    no_room,
)
from ..domain.job import Job, State, Submission
from ..domain.results import results_of
from ..domain.sweep import Run
from ..domain.transfer import Transfers
from ..service.pictures import MAX_RESULT, find_picture
from ..service.port import Jobs, Page, all_jobs
from ..workspace import Workspace
from .errors import error_response
from .http import ApiRequest, ApiResponse
from .job_files import (
    NOTEBOOK,
    answer_cells,
    answer_difference,
    answer_export,
    answer_record,
    answer_snapshot,
)
from .large_body import split_body
from .old_results import answer_old_results, answer_removal
from .ranges import file_response
from .results import picture_response, results_response
from .without_outputs import without_outputs

Handler = Callable[..., ApiResponse]
MAX_PAGE = 500
MAX_CURSOR = 200
_SLOW = ("/notebook", "/cells", "/snapshot", "/export", "/picture", "/deliver")
"""Ends of paths that read a whole notebook or journal, or copy many files."""
_OF_WORKSPACE = ("/difference", "/result")
"""Ends of paths of a job that are about a file of the workspace."""


@dataclass(frozen=True)
class RequestContext:
    """Server-side context of a request.

    `events`: whether the caller may subscribe to them. `transfers`: uploads in progress.
    `workspace`: the files that the caller's notebooks are among; a gateway sees none.
    """

    events: bool = True
    transfers: Transfers = field(default_factory=Transfers)
    workspace: Workspace | None = None


def handle(jobs: Jobs, request: ApiRequest, context: RequestContext | None = None) -> ApiResponse:
    """Answer one request; a JobsError becomes a response, other errors are the edge's."""
    context = context or RequestContext()
    try:
        for method, pattern, handler in ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                return handler(_Call(jobs, request, context), *match.groups())
        raise NoRoute(f"There is no {request.method} {request.path}.")
    except JobsError as error:
        return error_response(error)


def action(request: ApiRequest) -> str:
    """Return the action for the authorizer: `read`, `write`, or `execute` to run code."""
    if request.method in ("GET", "HEAD") or request.path == "preflight":
        return "read"
    runs = request.path in ("jobs", "sweeps") or request.path.endswith("/rerun")
    return "execute" if request.method == "POST" and runs else "write"


def takes_large(request: ApiRequest) -> bool:
    """Tell whether the body may hold an open notebook; all other bodies are small."""
    return request.method == "POST" and request.path in ("jobs", "sweeps", "preflight")


def touches_workspace(request: ApiRequest) -> bool:
    """Tell whether a request is about files of the workspace."""
    is_of_job = request.path.startswith("jobs/") and request.path.endswith(_OF_WORKSPACE)
    is_any = is_of_job or request.path == "old-results"
    return is_any or takes_large(request) or action(request) == "execute"


def is_slow(request: ApiRequest) -> bool:
    """Tell whether a request may take as long as copying files or building a notebook does."""
    return touches_workspace(request) or request.path.endswith(_SLOW) or request.path == "results"


class _Call(NamedTuple):
    jobs: Jobs
    request: ApiRequest
    context: RequestContext

    def submission(self, key: str | None) -> Submission:
        """Return the body's submission. Raises BadInput, or Unavailable where there is no room."""
        from .bodies import submission  # pydantic: not while a server starts

        document, content = self._document()
        return submission(document, key, content)

    def sweep(self, key: str | None) -> tuple[Submission, list[Run]]:
        """Return the body's submission and its runs. Raises as `submission`."""
        from .bodies import sweep

        document, content = self._document()
        return sweep(document, key, content)

    def _document(self) -> tuple[dict[str, Any], bytes | None]:
        """Return the body, and the open notebook where the body was too large to have it there."""
        if self.request.large is None:
            return self.request.json(), None
        try:
            body, content = split_body(self.request.large)
        except ValueError as error:
            raise BadInput(f"The body is no JSON: {error}.") from error
        except OSError as error:
            raise no_room("The body cannot be taken apart", error) from error
        return replace(self.request, body=body).json(), content


def _flavors(call: _Call) -> ApiResponse:
    return ApiResponse.json(200, call.jobs.flavors())


def _list(call: _Call) -> ApiResponse:
    jobs, request = call.jobs, call.request
    if "name" in request.query:
        return _page(Page(_named(jobs, request.query["name"].split(","))))
    limit = request.integer("limit", 50)
    if not 1 <= limit <= MAX_PAGE:
        raise BadInput(f"limit is from 1 to {MAX_PAGE}.")
    try:
        states = [State(s) for s in request.query.get("state", "").split(",") if s]
    except ValueError as error:
        raise BadInput(f"state: {error}.") from error
    cursor = request.query.get("cursor")
    if cursor is not None and not 1 <= len(cursor) <= MAX_CURSOR:
        raise BadInput("cursor is what `next` of the page before was.")
    notebook = request.query.get("notebook")
    if notebook is not None and (not notebook or notebook.startswith("/")):
        raise BadInput("notebook is a path in the workspace.")
    group = request.query.get("group")
    return _page(jobs.find(states, limit, cursor, notebook, group=group))


def _named(jobs: Jobs, names: Collection[str]) -> list[Job]:
    """Return those of some jobs that exist."""
    if len(names) > MAX_PAGE:
        raise BadInput(f"name is at most {MAX_PAGE} names.")
    existing_jobs = []
    for name in names:
        with contextlib.suppress(NotFound):
            existing_jobs.append(jobs.get(name))
    return existing_jobs


def _page(page: Page) -> ApiResponse:
    return ApiResponse.json(200, {"jobs": [j.to_json() for j in page.jobs], "next": page.next})


def _submit(call: _Call) -> ApiResponse:
    from .bodies import idempotency_key

    key = idempotency_key(call.request.headers)
    with call.context.transfers.track(key) as transfer:
        job, created = call.jobs.submit(call.submission(key), transfer)
    return ApiResponse.json(201 if created else 200, job.to_json())


def _sweep(call: _Call) -> ApiResponse:
    from .bodies import idempotency_key

    key = idempotency_key(call.request.headers)
    submission, runs = call.sweep(key)
    jobs: list[Job] = []
    with call.context.transfers.track(key) as transfer:
        transfer.expect_jobs(len(runs))
        try:
            for job in call.jobs.sweep(submission, runs, transfer):
                jobs.append(job)
        except JobsError as error:
            if not jobs:
                raise
            if not isinstance(error, Withdrawn):
                made = f"{len(jobs)} of {len(runs)} jobs"
                what = f"Submitted as the group {submission.group}: {made}."
                may_pass_later = error.retryable or isinstance(error, StorageFull)
                is_repeatable = key is not None and may_pass_later
                more = " Sending the same again submits the others." if is_repeatable else ""
                raise PartlySubmitted(f"{what}{more} {error.message}", error.hint) from error
    body = {"group": submission.group, "jobs": [job.to_json() for job in jobs]}
    return ApiResponse.json(201, body)


def _results(call: _Call) -> ApiResponse:
    group = call.request.query.get("group")
    if not group:
        raise BadInput("group is missing.", "Name the group whose results to compare.")
    jobs = all_jobs(call.jobs, group=group)
    if not jobs:
        raise no_group(group)
    return results_response(results_of(jobs), group, call.request.query.get("format", "json"))


def _withdraw(call: _Call, key: str) -> ApiResponse:
    from .bodies import idempotency_key

    if call.context.workspace is None:
        raise NoRoute("A controller withdraws no submission.", "Cancel or delete the job.")
    idempotency_key({"Idempotency-Key": key})  # a key that no submission can have is refused
    call.context.transfers.withdraw(key)
    return ApiResponse(204)


def _get(call: _Call, name: str) -> ApiResponse:
    return ApiResponse.json(200, call.jobs.details(name).to_json())


def _delete(call: _Call, name: str) -> ApiResponse:
    call.jobs.delete(name)
    return ApiResponse(204)


def _cancel(call: _Call, name: str) -> ApiResponse:
    return ApiResponse.json(202, call.jobs.cancel(name).to_json())


def _deliver(call: _Call, name: str) -> ApiResponse:
    return ApiResponse.json(200, call.jobs.deliver(name).to_json())


def _rerun(call: _Call, name: str) -> ApiResponse:
    from .bodies import changes, idempotency_key

    key = idempotency_key(call.request.headers)
    changed = changes(call.request.json(), key)
    with call.context.transfers.track(key) as transfer:
        return ApiResponse.json(201, call.jobs.rerun(name, changed, transfer).to_json())


def _preflight(call: _Call) -> ApiResponse:
    return ApiResponse.json(200, call.jobs.preflight(call.submission(None)).to_json())


def _journal(call: _Call, name: str) -> ApiResponse:
    return ApiResponse.json(200, vars(call.jobs.journal(name, call.request.integer("offset", 0))))


def _logs(call: _Call, name: str) -> ApiResponse:
    return ApiResponse.json(200, vars(call.jobs.logs(name, call.request.integer("offset", 0))))


def _notebook(call: _Call, name: str) -> ApiResponse:
    outputs = call.request.query.get("outputs", "true")
    if outputs not in ("true", "false"):
        raise BadInput("outputs is true or false.")
    file, sha256 = call.jobs.notebook(name)
    if outputs == "false":
        file, sha256 = without_outputs(file), None
    return file_response(call.request, file, sha256, NOTEBOOK)


def _record(call: _Call, name: str) -> ApiResponse:
    return answer_record(call.jobs, name, call.context.workspace)


def _cells(call: _Call, name: str) -> ApiResponse:
    return answer_cells(call.jobs, name)


def _snapshot(call: _Call, name: str) -> ApiResponse:
    return answer_snapshot(call.jobs, call.request, name)


def _difference(call: _Call, name: str) -> ApiResponse:
    return answer_difference(call.jobs, name, call.context.workspace)


def _export(call: _Call, name: str) -> ApiResponse:
    return answer_export(call.jobs, call.request, name, call.context.workspace)


def _old_results(call: _Call) -> ApiResponse:
    return answer_old_results(call.jobs, call.request, call.context.workspace)


def _remove_result(call: _Call, name: str) -> ApiResponse:
    return answer_removal(call.jobs, name, call.context.workspace)


def _picture(call: _Call, name: str) -> ApiResponse:
    metric = call.request.query.get("metric")
    with call.jobs.notebook(name, MAX_RESULT).file as result:
        if not metric:
            raise BadInput("metric is missing.", "Name the metric whose picture to show.")
        return picture_response(find_picture(result, metric))


def _health(call: _Call) -> ApiResponse:
    health = {
        "status": "ok",
        "version": __version__,
        "backend": call.jobs.backend,
        "events": call.context.events,
    }
    return ApiResponse.json(200, health)


_JOB = r"jobs/([^/]+)"
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", r"flavors", _flavors),
    ("GET", r"jobs", _list),
    ("POST", r"jobs", _submit),
    ("POST", r"sweeps", _sweep),
    ("GET", r"results", _results),
    ("DELETE", r"submissions/([^/]+)", _withdraw),
    ("GET", _JOB, _get),
    ("DELETE", _JOB, _delete),
    ("POST", _JOB + r"/cancel", _cancel),
    ("POST", _JOB + r"/rerun", _rerun),
    ("POST", _JOB + r"/deliver", _deliver),
    ("GET", _JOB + r"/journal", _journal),
    ("GET", _JOB + r"/logs", _logs),
    ("GET", _JOB + r"/notebook", _notebook),
    ("GET", _JOB + r"/picture", _picture),
    ("GET", _JOB + r"/record", _record),
    ("GET", _JOB + r"/cells", _cells),
    ("GET", _JOB + r"/snapshot", _snapshot),
    ("GET", _JOB + r"/difference", _difference),
    ("GET", _JOB + r"/export", _export),
    ("DELETE", _JOB + r"/result", _remove_result),
    ("GET", r"old-results", _old_results),
    ("POST", r"preflight", _preflight),
    ("GET", r"health", _health),
)
"""Method, pattern of the path, handler."""
