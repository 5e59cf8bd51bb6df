"""The same use cases behind a gateway. Freezing and publishing happen on this side.

A gateway knows no workspace roots: paths cross as absolute ones without their leading slash, so
that a server and a command line with different roots mean the same files.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from job_runner.protocol import documents, layout

from ..domain.errors import Conflict, Damaged, NotFound, TooLarge, Unavailable
from ..domain.job import Delivery, DeliveryState, Job, State, Submission
from ..exchange import Request
from ..exchange.gateway import Gateway, GatewayExchange
from ..workspace import Frozen, freeze
from ..workspace.freeze import locate
from ..workspace.publish import CannotPublish
from .delivery import publish_result, record_of
from .port import Page, Text

RETRIES = 3
MAX_BLOB = 100 << 20
"""Bytes of one file that a gateway takes."""


class RemoteJobs:
    """Implements `service.port.Jobs` over a controller's REST, for one workspace on this host."""

    backend = "kubernetes"
    pulls = True

    def __init__(self, url: str, token_file: Path, workspace: Path) -> None:
        self._gateway = Gateway(url, token_file)
        self._exchange = GatewayExchange(self._gateway)
        self._workspace = workspace

    def submit(self, asked: Submission) -> tuple[Job, bool]:
        """See the port. Sent again after a lost connection it is still one job."""
        if asked.output is not None:
            locate(self._workspace, asked.output)
        frozen = freeze(self._workspace, asked.notebook, asked.inputs, asked.expected_sha256)
        self._upload(frozen)
        body = {
            "notebook": self._absolute(asked.notebook),
            "expected_sha256": frozen.sha256,
            "flavor": asked.flavor,
            "device": asked.device,
            "parameters": asked.parameters,
            "inputs": [{"path": self._absolute(i.path), "sha256": i.sha256} for i in frozen.inputs],
            "isolated": asked.isolated,
            "env": asked.env,
            "max_runtime": asked.max_runtime,
            "output": None if asked.output is None else self._absolute(asked.output),
            "name": asked.name,
            "priority": asked.priority,
        }
        headers = {"Idempotency-Key": asked.idempotency_key or uuid.uuid4().hex}
        answer = _again(lambda: self._gateway.call("POST", "jobs", json=body, headers=headers))
        return self._job(answer.json()), answer.status_code == 201

    def get(self, name: str) -> Job:
        """See the port."""
        return self._job(self._gateway.call("GET", f"jobs/{name}").json())

    def find(
        self, states: Sequence[State] = (), limit: int = 50, cursor: str | None = None
    ) -> Page:
        """See the port."""
        query: dict[str, Any] = {"limit": limit}
        if states:
            query["state"] = ",".join(s.value for s in states)
        if cursor is not None:
            query["cursor"] = cursor
        page = self._gateway.call("GET", "jobs", params=query).json()
        return Page([self._job(j) for j in page["jobs"]], page["next"])

    def cancel(self, name: str) -> Job:
        """See the port."""
        return self._job(self._gateway.call("POST", f"jobs/{name}/cancel").json())

    def delete(self, name: str) -> None:
        """See the port."""
        self._gateway.call("DELETE", f"jobs/{name}")

    def deliver(self, name: str) -> Job:
        """Fetch the result and publish it in this workspace (`pull`), unless somebody did.

        A job whose source is outside of this workspace is left to whoever can reach it. Where the
        folder cannot be written the job is `held` for this reader, and a later call tries again.
        """
        job = self.get(name)
        if job.delivery.path is not None or not job.state.final:
            return job
        source = PurePosixPath("/", self._request(name).notebook)
        if not source.is_relative_to(self._workspace):
            return job
        try:
            data = self.notebook(name)
        except NotFound:  # not folded yet, or nothing ran
            return job
        try:
            published = publish_result(self._here(self._request(name)), data, self._workspace)
        except CannotPublish as error:
            return replace(job, delivery=Delivery(DeliveryState.HELD, None, str(error)))
        record = record_of(replace(published, path=self._absolute(published.path)))
        # Another one of this user's processes may have been first: then its record stands.
        with contextlib.suppress(Conflict):
            self._exchange.put(name, layout.DELIVERY, documents.encode(record))
        return self.get(name)

    def logs(self, name: str, offset: int = 0) -> Text:
        """See the port."""
        answer = self._gateway.call("GET", f"jobs/{name}/logs", params={"offset": offset})
        return Text(**answer.json())

    def notebook(self, name: str) -> bytes:
        """See the port."""
        return self._gateway.call("GET", f"jobs/{name}/notebook").content

    def flavors(self) -> dict[str, Any]:
        """See the port."""
        catalog: dict[str, Any] = self._gateway.call("GET", "flavors").json()
        return catalog

    def changes(self) -> Iterator[Job | None]:
        """See the port: the gateway's server-sent events; its heartbeats become None."""
        with self._gateway.stream("GET", "events") as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    yield self._job(json.loads(line.removeprefix("data: ")))
                elif line.startswith(":"):
                    yield None
        raise Unavailable("The gateway ended the stream of events.", "It is taken up again.")

    def _upload(self, frozen: Frozen) -> None:
        """Send snapshot and inputs as blobs, before the request that names them."""
        pieces: list[tuple[str, str, Callable[[], bytes]]] = [
            (frozen.notebook, frozen.sha256, lambda: frozen.data)
        ]
        pieces += [(i.path, i.sha256, i.source.read_bytes) for i in frozen.inputs]
        for path, digest, read in pieces:
            data = read()
            if len(data) > MAX_BLOB:
                raise TooLarge(f"{path} is over {MAX_BLOB >> 20} MiB.", "Send a smaller one.")
            _again(partial(self._gateway.call, "PUT", f"blobs/{digest}", content=data))

    def _request(self, name: str) -> Request:
        data = self._exchange.read(name, layout.REQUEST)
        if data is None:
            raise Damaged(f"{name} has no {layout.REQUEST}.")
        return Request.from_document(json.loads(data))

    def _absolute(self, path: str) -> str:
        return str(PurePosixPath(self._workspace, path)).lstrip("/")

    def _relative(self, path: str) -> str:
        absolute = PurePosixPath("/", path)
        inside = absolute.is_relative_to(self._workspace)
        return str(absolute.relative_to(self._workspace)) if inside else path

    def _here(self, request: Request) -> Request:
        output = None if request.output is None else self._relative(request.output)
        return replace(request, notebook=self._relative(request.notebook), output=output)

    def _job(self, document: dict[str, Any]) -> Job:
        job = Job.from_json(document)
        delivery = job.delivery
        if delivery.path is not None:
            delivery = replace(delivery, path=self._relative(delivery.path))
        return replace(job, notebook=self._relative(job.notebook), delivery=delivery)


def _again(call: Callable[[], Any]) -> Any:
    """Call again after a lost connection: only for what is harmless to repeat."""
    for _ in range(RETRIES - 1):
        try:
            return call()
        except Unavailable:
            continue
    return call()
