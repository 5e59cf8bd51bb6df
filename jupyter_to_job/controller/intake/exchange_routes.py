"""The gateway's routes to job directories: who may read and write which file.

A notebook shares its pod with the agent and may fake what the agent sends. So every document is
validated here, and later readers of the directory can rely on it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from job_runner.protocol import documents, layout

from ...api import ApiRequest, ApiResponse
from ...domain.errors import (
    BadInput,
    Conflict,
    NotFound,
    OverBudget,
    Refused,
    StorageFull,
    TooLarge,
    WrongOffset,
    no_job,
)
from ...domain.names import printable
from ...exchange import FileExchange
from ...exchange.uploads import Upload
from ...service.delivery import find_deliverable, hold
from ..callers.identity import AgentPod, CourierPod, DevPod, Identity
from ..callers.volumes import JobOrigins, require_same_workspace
from ..reconciling.job_files import is_ending
from .attempt_budgets import AttemptBudgets
from .documents import (
    check_created,
    check_delivery,
    check_outcome,
    check_published,
    claiming_pod,
    held_record,
)

_ROUTE = re.compile(r"exchange/([^/]+)/(.+)", re.DOTALL)
_DOCUMENT = re.compile(
    rf"attempt-[1-9]\d*/({re.escape(layout.RUNNER)}|{re.escape(layout.CREATED)}|"
    rf"{re.escape(layout.OUTCOME)})",
    re.ASCII,
)
_DELIVERED = re.compile(
    rf"{re.escape(layout.DELIVERABLE)}|"
    rf"attempt-[1-9]\d*/({re.escape(layout.RESULT)}|{layout.ARTIFACTS}/.+)",
    re.ASCII | re.DOTALL,
)
"""What a courier may read."""
REPORTS: dict[str, Callable[[dict[str, object]], object]] = {
    layout.PUBLISHED: check_published,
    layout.DELIVERY: check_delivery,
    layout.HELD: held_record,
}
"""What a dev pod or a courier may write, with what raises BadInput for anything else."""
_APPENDABLE = re.compile(
    rf"attempt-[1-9]\d*/({layout.JOURNAL}/\d{{8}}\.jsonl|{layout.ARTIFACTS}/.+)",
    re.ASCII | re.DOTALL,
)


class ExchangeRoutes:
    """Handles `exchange/{job}/{path}` for an authenticated caller."""

    def __init__(self, exchange: FileExchange, budgets: AttemptBudgets) -> None:
        self._exchange = exchange
        self._origins = JobOrigins(exchange)
        self._budgets = budgets

    def handle(
        self, identity: Identity, request: ApiRequest, *, is_watched: bool = False
    ) -> tuple[ApiResponse, str]:
        """Return the response, and the job whose directory changed ("" if none did).

        The answer to a write says whether the job `is_watched`: then its agent sends more often.
        Raises NotFound for another owner's job, Refused for a file that the caller may not write,
        BadInput for an invalid document, Conflict for a file that exists with other bytes.
        """
        match = _ROUTE.fullmatch(request.path)
        if match is None:
            raise NotFound(f"There is no {request.method} {request.path}.")
        job, path = match.groups()
        self._check_access(identity, job)
        if request.method in ("GET", "HEAD"):
            return self._answer_read(identity, job, path, request), ""
        if request.method not in ("PUT", "POST"):
            raise NotFound(f"There is no {request.method} {request.path}.")
        call = _Call(request)
        length = call.upload.size
        if not isinstance(identity, AgentPod):
            self._report_delivery(identity, job, path, call)
        elif _DOCUMENT.fullmatch(path) and request.method == "PUT":
            self._put_document(identity, path, call.upload)
        elif _APPENDABLE.fullmatch(path):
            length = self._write_piece(identity, path, call)
        else:
            raise Refused(f"{path} is not yours to write.")
        return ApiResponse.json(200, {"length": length, "watched": is_watched}), job

    def _answer_read(
        self, identity: Identity, job: str, path: str, request: ApiRequest
    ) -> ApiResponse:
        """Return a file, or its size. Raises NotFound, and Refused for a courier's other files."""
        if isinstance(identity, CourierPod) and not _DELIVERED.fullmatch(path):
            raise Refused(f"{path} is not yours to read.")
        if request.method == "HEAD":
            return self._head(job, path)
        if path == layout.DELIVERABLE:
            return self._read_deliverable(job)
        return self._read(job, path, request.headers)

    def _check_access(self, identity: Identity, job: str) -> None:
        if isinstance(identity, DevPod):
            is_own = self._exchange.request(job).owner == identity.owner
        else:
            is_own = identity.job == job
        if not is_own:
            raise no_job(job)

    def _read_deliverable(self, job: str) -> ApiResponse:
        """Tell what is to be published of a job. Raises NotFound if there is nothing any more."""
        deliverable = find_deliverable(self._exchange, job)
        if deliverable is None:
            raise NotFound(f"There is nothing to deliver of {job}.")
        return ApiResponse.json(200, deliverable.to_document())

    def _report_delivery(
        self, identity: DevPod | CourierPod, job: str, path: str, call: _Call
    ) -> None:
        """Store what came of a delivery, if an attempt of the job has ended.

        held.json says why the last try failed; the others are written once.
        """
        if call.method != "PUT" or path not in REPORTS:
            raise Refused(f"{path} is not yours to write.")
        if isinstance(identity, DevPod):
            request = self._exchange.request(job)
            require_same_workspace(self._origins, request, identity.origin)
        document = _parse_document(call.upload)
        REPORTS[path](document)
        directory = self._exchange.directory(job)
        if not any(
            (layout.attempt_dir(directory, n) / layout.OUTCOME).exists()
            for n in layout.attempts(directory)
        ):
            raise Conflict(f"{job} has not ended yet.")
        if path == layout.HELD:
            hold(self._exchange, job, held_record(document))
        else:
            self._exchange.put(job, path, call.upload)

    def _put_document(self, agent: AgentPod, path: str, upload: Upload) -> None:
        """Store an agent's claim of an attempt, or what it says of the end of that."""
        document = _parse_document(upload)
        target = self._exchange.directory(agent.job) / path
        attempt = target.parent
        if target.name == layout.RUNNER:
            if claiming_pod(document) != agent.pod_uid:
                raise Refused("A pod claims an attempt for itself only.")
            if not target.exists() and is_ending(self._exchange, agent.job):
                raise Refused("The job is being ended: nothing starts any more.")
            self._exchange.put(agent.job, path, upload)
            return
        self._check_claim(agent, attempt)
        sent = attempt / layout.SENT_OUTCOME
        if target.name == layout.CREATED:
            check_created(document)
            if sent.exists() or (attempt / layout.OUTCOME).exists():
                raise Conflict(f"{attempt.name} has ended.")
            self._exchange.put(agent.job, path, upload)
            return
        check_outcome(document)
        if target.exists() and not sent.exists():
            raise Conflict(f"{attempt.name} has ended.")
        # The result is folded later, by a process of its own (`folds`), which writes the outcome.
        self._exchange.put(agent.job, f"{attempt.name}/{sent.name}", upload)
        self._budgets.forget(agent.job, path)

    def _write_piece(self, agent: AgentPod, path: str, call: _Call) -> int:
        """Append to a journal or artifact, or store it whole, until the attempt has ended.

        Return the length of the file.
        """
        directory = self._exchange.directory(agent.job)
        attempt = directory / path.partition("/")[0]
        self._check_claim(agent, attempt)
        offset = None if call.method == "PUT" else call.offset
        length = self._exchange.size(agent.job, path)
        if any((attempt / name).exists() for name in (layout.OUTCOME, layout.SENT_OUTCOME)):
            if offset is not None and offset != (length or 0):
                raise WrongOffset(f"{path} ends at {length or 0}, not at {offset}.", length or 0)
            if offset is None and length is not None:
                self._exchange.put(agent.job, path, call.upload)
                return length
            if call.upload.size or length is None:
                raise Conflict(f"{attempt.name} has ended.")
            return length
        try:
            with self._budgets.admit(agent.job, path, call.upload, offset):
                if offset is not None:
                    return self._exchange.append(agent.job, path, offset, call.upload)
                self._exchange.put(agent.job, path, call.upload)
                return call.upload.size
        except (OverBudget, StorageFull) as error:
            name = path.partition(f"/{layout.ARTIFACTS}/")[2]
            if name:  # the outcome tells of it
                message = (
                    f"Files that the run created were left out ({printable(name)} for one): {error}"
                )
                document = {"message": message}
                self._exchange.write_once(agent.job, f"{attempt.name}/{layout.LEFT_OUT}", document)
            raise

    def _check_claim(self, agent: AgentPod, attempt: Path) -> None:
        """Raise Refused unless this very pod claimed the attempt."""
        claim = self._exchange.document(agent.job, f"{attempt.name}/{layout.RUNNER}")
        if claim is None or claim.get("pod") != agent.pod_uid:
            raise Refused(f"{attempt.name} is not this pod's.")

    def _read(self, job: str, path: str, headers: Mapping[str, str]) -> ApiResponse:
        text = headers.get("Range", "bytes=0-")
        match = re.fullmatch(r"bytes=(\d{1,18})-", text, re.ASCII)
        if match is None:
            raise BadInput(f"The range {text!r} is none of bytes=N-.")
        file = self._exchange.open(job, path)
        if file is None:
            raise NotFound(f"{job} has no {path}.")
        # An offset beyond the end reads nothing; file systems refuse to seek to a very large one.
        file.seek(min(int(match[1]), os.fstat(file.fileno()).st_size))
        status = 206 if "Range" in headers else 200
        return ApiResponse(status, b"", "application/octet-stream", file=file)

    def _head(self, job: str, path: str) -> ApiResponse:
        size = self._exchange.size(job, path)
        if size is None:
            raise NotFound(f"{job} has no {path}.")
        headers = {"Content-Length": str(size)}
        return ApiResponse(200, b"", "application/octet-stream", headers)


class _Call:
    """A request that writes: its bytes, and where they begin."""

    def __init__(self, request: ApiRequest) -> None:
        self.method = request.method
        self.upload = request.upload or Upload.of(request.body)
        self.offset = request.integer("offset", -1)


def claimed_attempt(request: ApiRequest) -> str:
    """Return the folder of the attempt that a request claims, "" if it claims none."""
    match = _ROUTE.fullmatch(request.path)
    if match is None or request.method != "PUT" or not _DOCUMENT.fullmatch(match[2]):
        return ""
    attempt, _, document = match[2].partition("/")
    return attempt if document == layout.RUNNER else ""


def _parse_document(upload: Upload) -> dict[str, object]:
    """Parse a document of version 1. Raises BadInput or TooLarge."""
    if upload.size > documents.MAX_SENT_BYTES:
        raise TooLarge(f"A document is at most {documents.MAX_SENT_BYTES >> 10} KiB.")
    try:
        document = json.loads(b"".join(upload.chunks()))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The document is no JSON: {error}.") from error
    if not isinstance(document, dict) or document.get("v") != 1:
        raise BadInput("The document has no version 1.")
    return document
