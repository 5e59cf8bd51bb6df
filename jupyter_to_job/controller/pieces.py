"""Who may read and write which piece of a job's directory through the gateway."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from job_runner.protocol import layout
from job_runner.protocol.result import write_result

from ..api import Request, Response
from ..domain.errors import BadInput, NotFound, Refused
from ..exchange import FileExchange
from .identity import AgentPod, Identity

_ROUTE = re.compile(r"exchange/([^/]+)/(.+)")
_AGENT_WRITES = re.compile(
    rf"attempt-[1-9]\d*/({re.escape(layout.RUNNER)}|{re.escape(layout.OUTCOME)}"
    rf"|{layout.JOURNAL}/\d{{8}}\.jsonl|{layout.ARTIFACTS}/.+)"
)
_DEV_WRITES = re.compile(re.escape(layout.DELIVERY))


class Pieces:
    """Answers `exchange/{job}/{path}` for an identity that was checked."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange

    def handle(self, identity: Identity, request: Request) -> tuple[Response, str]:
        """Answer, and name the job whose directory changed ("" if none did).

        Raises NotFound for somebody else's job, Refused for a piece that is not the caller's to
        write, Conflict for other bytes or another end.
        """
        match = _ROUTE.fullmatch(request.path)
        if match is None:
            raise NotFound(f"There is no {request.method} {request.path}.")
        job, path = match.groups()
        self._check_reach(identity, job)
        if request.method in ("GET", "HEAD"):
            return self._read(job, path, request.headers), ""
        allowed = _AGENT_WRITES if isinstance(identity, AgentPod) else _DEV_WRITES
        if allowed.fullmatch(path) is None:
            raise Refused(f"{path} is not yours to write.")
        if request.method == "PUT":
            if path.endswith(".json"):
                _check_document(request.body)
            self._fold_before(job, path)
            self._exchange.put(job, path, request.body)
            return Response.json(200, {"length": len(request.body)}), job
        if request.method == "POST":
            offset = request.integer("offset", -1)
            length = self._exchange.append(job, path, offset, request.body)
            return Response.json(200, {"length": length}), job
        raise NotFound(f"There is no {request.method} {request.path}.")

    def _fold_before(self, job: str, path: str) -> None:
        """Fold the result before an outcome appears: agents send the journal, never the result."""
        target = self._exchange.directory(job) / path
        if target.name == layout.OUTCOME and not target.exists():
            write_result(self._exchange.directory(job), target.parent)

    def _check_reach(self, identity: Identity, job: str) -> None:
        mine = (
            identity.job == job
            if isinstance(identity, AgentPod)
            else self._exchange.request(job).owner == identity.owner
        )
        if not mine:
            raise NotFound(f"There is no job {job!r}.")

    def _read(self, job: str, path: str, headers: Mapping[str, str]) -> Response:
        text = headers.get("Range", "bytes=0-")
        match = re.fullmatch(r"bytes=(\d+)-", text)
        if match is None:
            raise BadInput(f"The range {text!r} is none of bytes=N-.")
        data = self._exchange.read(job, path, int(match[1]))
        if data is None:
            raise NotFound(f"{job} has no {path}.")
        status = 206 if "Range" in headers else 200
        return Response(status, data, "application/octet-stream")


def _check_document(body: bytes) -> None:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise BadInput(f"The document is no JSON: {error}.") from error
    if not isinstance(document, dict) or document.get("v") != 1:
        raise BadInput("The document has no version 1.")
