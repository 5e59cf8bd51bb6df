"""One job in detail: its record, the receipts of its cells, and its snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from job_runner.protocol import layout, times

from ..domain.errors import Damaged, NotFound
from ..domain.job_record import CellReceipt, JobRecord, SentFile
from ..exchange import FileExchange, Request
from ..exchange.records import ClearedRecord, DeliveryRecord
from ..exchange.retention import Policy, delivered_at, raise_if_cleared
from .delivery import find_delivered_attempt
from .port import OpenNotebook
from .reading.cell_receipts import read_receipts


@dataclass(frozen=True)
class StoredFiles:
    """Implements `service.port.JobFiles` on an exchange in files.

    `convert` makes a path of the submitter's workspace one of the reader's. Without a `policy` it
    is not known how long jobs are kept.
    """

    exchange: FileExchange
    request: Request
    convert: Callable[[str], str]
    policy: Policy | None = None
    max_line: int | None = None

    def record(self) -> JobRecord:
        """See the port."""
        exchange, request, name = self.exchange, self.request, self.request.name
        delivery = cleared = None
        with contextlib.suppress(Damaged):
            delivery = exchange.record(name, layout.DELIVERY, DeliveryRecord)
        with contextlib.suppress(Damaged):
            cleared = exchange.record(name, layout.CLEARED, ClearedRecord)
        retention = self.policy.retention if self.policy is not None else None
        since = None if cleared or retention is None else delivered_at(exchange, name)
        origin = self._origin()
        return JobRecord(
            snapshot_sha256=request.snapshot_sha256,
            kernel=request.kernel,
            interpreter=request.environment.interpreter or None,
            host=request.environment.host or None,
            image=origin.get("image"),
            env=tuple(sorted(request.env)),
            variables=tuple(sorted({*request.environment.variables, *origin.get("env", ())})),
            inputs=tuple(SentFile(file.path, file.size) for file in request.inputs),
            files=() if delivery is None else delivery.artifacts,
            result_sha256=None if delivery is None else delivery.sha256,
            delivered=None if delivery is None else delivery.time,
            retention=retention,
            kept_until=None if since is None else times.from_unix(since + (retention or 0)),
            cleared=None if cleared is None else cleared.time,
            cleared_reason=None if cleared is None else cleared.message,
        ).with_paths(self.convert)

    def cells(self) -> list[CellReceipt]:
        """See the port."""
        name = self.request.name
        raise_if_cleared(self.exchange, name)
        directory = self.exchange.directory(name)
        number = find_delivered_attempt(self.exchange, name)
        number = number or max(layout.attempts(directory), default=None)
        if number is None:
            return []
        path = layout.attempt_dir(directory, number) / layout.JOURNAL
        return read_receipts(path, self.max_line)

    def snapshot(self) -> OpenNotebook:
        """See the port."""
        name = self.request.name
        raise_if_cleared(self.exchange, name)
        file = self.exchange.open(name, layout.SNAPSHOT)
        if file is None:
            raise NotFound(f"The snapshot of {name} is gone.")
        return OpenNotebook(file, self.request.snapshot_sha256)

    def _origin(self) -> dict[str, Any]:
        """Return what is shown of the dev pod that the job came from: its image, and names."""
        with contextlib.suppress(Damaged, NotFound):
            document = self.exchange.document(self.request.name, layout.ORIGIN)
            if document is not None:
                # Some come with their values, others as references to ConfigMaps.
                env = {*(document.get("env") or ()), *(document.get("env_sources") or ())}
                return {"image": document.get("image"), "env": env}
        return {}
