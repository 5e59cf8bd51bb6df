"""Delivery of a result that is behind a gateway: what a dev pod and a courier have in common.

The files are read while they are published, piece by piece, and a lost connection is taken up where
it broke. What came of it goes back to the gateway, so that every reader sees it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol, cast

from job_runner.protocol import documents, layout

from ..domain.errors import Conflict, Damaged, NotFound, Unavailable
from ..exchange.patience import Patience
from ..exchange.pieces import reading
from ..exchange.records import DeliveryRecord, HeldRecord, PublishedRecord
from ..exchange.remote_piece import RemotePiece
from ..workspace import Published, Workspace
from .delivery import document_of
from .publication import Deliverable, Result, Sign, publish_job

Convert = Callable[[str], str]


class JobPieces(Protocol):
    """The pieces of one job behind a gateway. Both raise errors of `domain.errors`."""

    def read(self, path: str, offset: int = 0) -> Iterator[bytes]:
        """Yield the bytes of one piece from `offset`, as they come in."""
        ...

    def put(self, path: str, data: bytes) -> object:
        """Write a piece."""
        ...


def deliver_remotely(
    pieces: JobPieces,
    name: str,
    workspace: Workspace,
    to_workspace: Convert,
    from_workspace: Convert,
    sign: Sign,
) -> DeliveryRecord | HeldRecord | None:
    """Publish a job of a gateway in `workspace`, and report it there; None if nothing is due.

    The last two convert paths from and to those of the gateway. Raises Conflict if the notebook is
    another workspace's, and Unavailable.
    """
    deliverable = _find_deliverable(pieces, name)
    if deliverable is None:
        return None
    published = deliverable.published
    if published is not None:
        published = replace(published, path=to_workspace(published.path))
    files = _RemoteFiles(pieces, deliverable, from_workspace)
    record = publish_job(
        replace(deliverable, published=published),
        workspace,
        files,
        to_workspace=to_workspace,
        sign=sign,
    )
    if isinstance(record, HeldRecord):
        files.put(layout.HELD, record)
    else:
        files.put(layout.DELIVERY, _delivery_to_send(record, from_workspace))
    return record


def _delivery_to_send(record: DeliveryRecord, from_workspace: Convert) -> DeliveryRecord:
    """Convert the paths of delivery.json. One that names too many files for a document names none.

    They are in the workspace all the same, and a message says where.
    """
    sent = replace(
        record,
        path=from_workspace(record.path),
        artifacts=tuple(map(from_workspace, record.artifacts)),
    )
    if len(documents.encode(document_of(sent))) <= documents.MAX_SENT_BYTES:
        return sent
    beside = PurePosixPath(record.path).parent
    folder = PurePosixPath(record.artifacts[0]).relative_to(beside).parts[0]
    note = (
        f"{len(record.artifacts):,} files that the run created are in {folder} beside it; their "
        "paths are too long in all to be listed."
    )
    return replace(sent, artifacts=(), message=" ".join(filter(None, (record.message, note))))


def _find_deliverable(pieces: JobPieces, name: str) -> Deliverable | None:
    try:
        data = b"".join(pieces.read(layout.DELIVERABLE))
    except NotFound:
        return None
    with reading(f"{name}/{layout.DELIVERABLE}"):
        return Deliverable.from_document(json.loads(data))


class _RemoteFiles:
    """Implements `ResultFiles` over a gateway, which may be away for a while."""

    artifacts_at = "kept by the gateway"

    def __init__(
        self, pieces: JobPieces, deliverable: Deliverable, from_workspace: Convert
    ) -> None:
        self._pieces = pieces
        self._deliverable = deliverable
        self._from_workspace = from_workspace
        self._patience = Patience()

    def results(self) -> Iterator[Result]:
        """See `ResultFiles`."""
        name = self._deliverable.name
        missing = Damaged(f"The result of {name} is gone.", "Run it again.")
        yield Result(self._open(layout.RESULT, missing), self._deliverable.sha256)

    def artifact(self, path: str) -> BinaryIO:
        """See `ResultFiles`."""
        return self._open(f"{layout.ARTIFACTS}/{path}", FileNotFoundError(path))

    def note_published(self, published: Published) -> None:
        """See `ResultFiles`."""
        path = self._from_workspace(published.path)
        self.put(layout.PUBLISHED, PublishedRecord(path, published.sha256))

    def put(self, path: str, record: PublishedRecord | HeldRecord | DeliveryRecord) -> None:
        """Write a document. Where another publisher was first, its own stands."""
        document = documents.encode(document_of(record))
        with contextlib.suppress(Conflict):
            self._patience.call(lambda: self._pieces.put(path, document))

    def _open(self, name: str, missing: Exception) -> BinaryIO:
        path = f"attempt-{self._deliverable.attempt}/{name}"

        def read(offset: int) -> Iterator[bytes]:
            try:
                yield from self._pieces.read(path, offset)
            except NotFound as error:
                raise missing from error
            except Damaged as error:  # the gateway cannot read its disk just now
                raise Unavailable(error.message, error.hint) from error

        return cast("BinaryIO", RemotePiece(read, self._patience))
