"""The gateway's routes to job directories: who may read and write which file.

A notebook shares its pod with the agent and may fake what the agent sends. So every document is
validated here, and later readers of the directory can rely on it.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from job_runner.protocol import layout
from job_runner.protocol.result.result import write_result

from ..api import ApiRequest, ApiResponse
from ..domain.errors import BadInput, Conflict, NotFound, Refused, TooLarge, Unavailable
from ..exchange import FileExchange
from ..exchange.port import WrongOffset
from .documents import MAX_DOCUMENT, check_delivery, check_outcome, claiming_pod
from .identity import AgentPod, DevPod, Identity

_ROUTE = re.compile(r"exchange/([^/]+)/(.+)", re.DOTALL)
_DOCUMENT = re.compile(
    rf"attempt-[1-9]\d*/({re.escape(layout.RUNNER)}|{re.escape(layout.OUTCOME)})", re.ASCII
)
_APPENDABLE = re.compile(
    rf"attempt-[1-9]\d*/({layout.JOURNAL}/\d{{8}}\.jsonl|{layout.ARTIFACTS}/.+)",
    re.ASCII | re.DOTALL,
)


class ExchangeRoutes:
    """Handles `exchange/{job}/{path}` for an authenticated caller."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._jobs_folding: set[str] = set()
        self._lock = threading.Lock()

    def handle(self, identity: Identity, request: ApiRequest) -> tuple[ApiResponse, str]:
        """Return the response, and the job whose directory changed ("" if none did).

        Raises NotFound for another owner's job, Refused for a file that the caller may not write,
        BadInput for an invalid document, Conflict for a file that exists with other bytes.
        """
        match = _ROUTE.fullmatch(request.path)
        if match is None:
            raise NotFound(f"There is no {request.method} {request.path}.")
        job, path = match.groups()
        self._check_access(identity, job)
        if request.method == "GET":
            return self._read(job, path, request.headers), ""
        if request.method == "HEAD":
            return self._head(job, path), ""
        if request.method not in ("PUT", "POST"):
            raise NotFound(f"There is no {request.method} {request.path}.")
        if isinstance(identity, DevPod):
            self._put_delivery(job, path, request)
        elif _DOCUMENT.fullmatch(path) and request.method == "PUT":
            self._put_document(identity, path, request.body)
        elif _APPENDABLE.fullmatch(path):
            return self._write_piece(identity, path, request), job
        else:
            raise Refused(f"{path} is not yours to write.")
        return ApiResponse.json(200, {"length": len(request.body)}), job

    def _check_access(self, identity: Identity, job: str) -> None:
        if isinstance(identity, AgentPod):
            is_own = identity.job == job
        else:
            is_own = self._exchange.request(job).owner == identity.owner
        if not is_own:
            raise NotFound(f"There is no job {job!r}.")

    def _put_delivery(self, job: str, path: str, request: ApiRequest) -> None:
        """Store delivery.json, if an attempt of the job has ended."""
        if path != layout.DELIVERY or request.method != "PUT":
            raise Refused(f"{path} is not yours to write.")
        check_delivery(_parse_document(request.body))
        directory = self._exchange.directory(job)
        if not any(
            (layout.attempt_dir(directory, n) / layout.OUTCOME).exists()
            for n in layout.attempts(directory)
        ):
            raise Conflict(f"{job} has not ended yet.")
        self._exchange.put(job, path, request.body)

    def _put_document(self, agent: AgentPod, path: str, body: bytes) -> None:
        """Store an agent's claim of an attempt, or the outcome of the attempt that it claimed."""
        document = _parse_document(body)
        target = self._exchange.directory(agent.job) / path
        if target.name == layout.RUNNER:
            if claiming_pod(document) != agent.pod_uid:
                raise Refused("A pod claims an attempt for itself only.")
            if not target.exists() and (target.parents[1] / layout.CANCEL).exists():
                raise Refused("The job was cancelled: nothing starts any more.")
        else:
            self._check_claim(agent, target.parent)
            check_outcome(document)
            if not target.exists():
                with self._fold_lock(agent.job):
                    # The agent sends no result: it is folded here, before the outcome is stored.
                    write_result(target.parents[1], target.parent)
        self._exchange.put(agent.job, path, body)

    def _write_piece(self, agent: AgentPod, path: str, request: ApiRequest) -> ApiResponse:
        """Append to a journal or artifact, or store it whole, until the attempt has ended."""
        directory = self._exchange.directory(agent.job)
        attempt = directory / path.partition("/")[0]
        self._check_claim(agent, attempt)
        ended = (attempt / layout.OUTCOME).exists()
        if request.method == "PUT":
            if ended and not (directory / path).exists():
                raise Conflict(f"{attempt.name} has ended.")
            self._exchange.put(agent.job, path, request.body)
            return ApiResponse.json(200, {"length": len(request.body)})
        offset = request.integer("offset", -1)
        length = self._exchange.size(agent.job, path) or 0
        if ended and offset == length and request.body:
            raise Conflict(f"{attempt.name} has ended.")
        if ended and offset != length:
            raise WrongOffset(f"{path} ends at {length}, not at {offset}.", length)
        length = self._exchange.append(agent.job, path, offset, request.body)
        return ApiResponse.json(200, {"length": length})

    def _check_claim(self, agent: AgentPod, attempt: Path) -> None:
        """Raise Refused unless this very pod claimed the attempt."""
        claim = self._exchange.document(agent.job, f"{attempt.name}/{layout.RUNNER}")
        if claim is None or claim.get("pod") != agent.pod_uid:
            raise Refused(f"{attempt.name} is not this pod's.")

    @contextmanager
    def _fold_lock(self, job: str) -> Iterator[None]:
        """Hold the job's fold lock. Raises Unavailable while an earlier request holds it."""
        with self._lock:
            if job in self._jobs_folding:
                raise Unavailable("The result is being put together.", "Ask again.")
            self._jobs_folding.add(job)
        try:
            yield
        finally:
            with self._lock:
                self._jobs_folding.discard(job)

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


def _parse_document(body: bytes) -> dict[str, object]:
    """Parse a document of version 1. Raises BadInput or TooLarge."""
    if len(body) > MAX_DOCUMENT:
        raise TooLarge(f"A document is at most {MAX_DOCUMENT >> 10} KiB.")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The document is no JSON: {error}.") from error
    if not isinstance(document, dict) or document.get("v") != 1:
        raise BadInput("The document has no version 1.")
    return document
