"""Who may read and write which piece of a job's directory through the gateway.

What an agent sends is what a notebook could write beside it: every document is checked here, once,
so that whoever reads the directory later need not fear it.
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
from .documents import MAX_DOCUMENT, check_delivery, check_outcome, pod_in
from .identity import AgentPod, DevPod, Identity

_ROUTE = re.compile(r"exchange/([^/]+)/(.+)", re.DOTALL)
_DOCUMENT = re.compile(
    rf"attempt-[1-9]\d*/({re.escape(layout.RUNNER)}|{re.escape(layout.OUTCOME)})", re.ASCII
)
_GROWING = re.compile(
    rf"attempt-[1-9]\d*/({layout.JOURNAL}/\d{{8}}\.jsonl|{layout.ARTIFACTS}/.+)",
    re.ASCII | re.DOTALL,
)


class ExchangeRoutes:
    """Answers `exchange/{job}/{path}` for an identity that was checked."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._folding: set[str] = set()
        self._lock = threading.Lock()

    def handle(self, identity: Identity, request: ApiRequest) -> tuple[ApiResponse, str]:
        """Answer, and name the job whose directory changed ("" if none did).

        Raises NotFound for somebody else's job, Refused for a piece that is not the caller's to
        write, BadInput for a document that is none, Conflict for other bytes or another end.
        """
        match = _ROUTE.fullmatch(request.path)
        if match is None:
            raise NotFound(f"There is no {request.method} {request.path}.")
        job, path = match.groups()
        self._check_reach(identity, job)
        if request.method == "GET":
            return self._read(job, path, request.headers), ""
        if request.method == "HEAD":
            return self._measure(job, path), ""
        if request.method not in ("PUT", "POST"):
            raise NotFound(f"There is no {request.method} {request.path}.")
        if isinstance(identity, DevPod):
            self._put_delivery(job, path, request)
        elif _DOCUMENT.fullmatch(path) and request.method == "PUT":
            self._put_document(identity, path, request.body)
        elif _GROWING.fullmatch(path):
            return self._grow(identity, path, request), job
        else:
            raise Refused(f"{path} is not yours to write.")
        return ApiResponse.json(200, {"length": len(request.body)}), job

    def _check_reach(self, identity: Identity, job: str) -> None:
        mine = (
            identity.job == job
            if isinstance(identity, AgentPod)
            else self._exchange.request(job).owner == identity.owner
        )
        if not mine:
            raise NotFound(f"There is no job {job!r}.")

    def _put_delivery(self, job: str, path: str, request: ApiRequest) -> None:
        """Take the record of a delivery, of a job that has something to deliver."""
        if path != layout.DELIVERY or request.method != "PUT":
            raise Refused(f"{path} is not yours to write.")
        check_delivery(_object(request.body))
        directory = self._exchange.directory(job)
        if not any(
            (layout.attempt_dir(directory, n) / layout.OUTCOME).exists()
            for n in layout.attempts(directory)
        ):
            raise Conflict(f"{job} has not ended yet.")
        self._exchange.put(job, path, request.body)

    def _put_document(self, agent: AgentPod, path: str, body: bytes) -> None:
        """Take an agent's claim of an attempt, or the outcome of the one that it claimed."""
        document = _object(body)
        target = self._exchange.directory(agent.job) / path
        if target.name == layout.RUNNER:
            if pod_in(document) != agent.pod_uid:
                raise Refused("A pod claims an attempt for itself only.")
            if not target.exists() and (target.parents[1] / layout.CANCEL).exists():
                raise Refused("The job was cancelled: nothing starts any more.")
        else:
            self._check_claim(agent, target.parent)
            check_outcome(document)
            if not target.exists():
                with self._folding_alone(agent.job):
                    # Agents send the journal, never the result: it is there before the outcome.
                    write_result(target.parents[1], target.parent)
        self._exchange.put(agent.job, path, body)

    def _grow(self, agent: AgentPod, path: str, request: ApiRequest) -> ApiResponse:
        """Append to a piece, or put it whole; an attempt that has ended grows no more."""
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
        """See that this attempt is this very pod's."""
        claim = self._exchange.document(agent.job, f"{attempt.name}/{layout.RUNNER}")
        if claim is None or claim.get("pod") != agent.pod_uid:
            raise Refused(f"{attempt.name} is not this pod's.")

    @contextmanager
    def _folding_alone(self, job: str) -> Iterator[None]:
        """Let nobody else fold this job: a client that gave up waiting comes again, and again."""
        with self._lock:
            if job in self._folding:
                raise Unavailable("The result is being put together.", "Ask again.")
            self._folding.add(job)
        try:
            yield
        finally:
            with self._lock:
                self._folding.discard(job)

    def _read(self, job: str, path: str, headers: Mapping[str, str]) -> ApiResponse:
        text = headers.get("Range", "bytes=0-")
        match = re.fullmatch(r"bytes=(\d{1,18})-", text, re.ASCII)
        if match is None:
            raise BadInput(f"The range {text!r} is none of bytes=N-.")
        file = self._exchange.open(job, path)
        if file is None:
            raise NotFound(f"{job} has no {path}.")
        # Beyond what there is yet there is nothing; far beyond, file systems do not even seek.
        file.seek(min(int(match[1]), os.fstat(file.fileno()).st_size))
        status = 206 if "Range" in headers else 200
        return ApiResponse(status, b"", "application/octet-stream", file=file)

    def _measure(self, job: str, path: str) -> ApiResponse:
        size = self._exchange.size(job, path)
        if size is None:
            raise NotFound(f"{job} has no {path}.")
        headers = {"Content-Length": str(size)}
        return ApiResponse(200, b"", "application/octet-stream", headers)


def _object(body: bytes) -> dict[str, object]:
    """Return a document of version 1. Raises BadInput, or TooLarge."""
    if len(body) > MAX_DOCUMENT:
        raise TooLarge(f"A document is at most {MAX_DOCUMENT >> 10} KiB.")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The document is no JSON: {error}.") from error
    if not isinstance(document, dict) or document.get("v") != 1:
        raise BadInput("The document has no version 1.")
    return document
