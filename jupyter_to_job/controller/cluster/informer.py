"""An informer: the records of one kind of object, kept up to date by list and watch.

It is our own: the client has no asynchronous one, and its threaded one neither pages nor times out.
Objects are reduced to small records as they arrive.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...backends.kubernetes import JobRecord, PodRecord
from ...backends.kubernetes.device_counts import PodRequests
from ...backends.kubernetes.nodes import NodeRecord
from ...backends.kubernetes.records import Manifest, RefusalRecord
from ...domain.errors import JobsError, NotFound, Refused, Unavailable
from .api_errors import REQUEST_TIMEOUT, read_json, translate_errors

PAGE_SIZE = 500
WATCH_TIMEOUT = 60
"""Seconds after which the API server is asked to end a watch."""
WATCH_READ_TIMEOUT = 90
"""Seconds after which a watch that the API server did not end counts as stalled."""
MIN_RETRY_DELAY, MAX_RETRY_DELAY = 1.0, 10.0
"""Seconds before a watch that failed is begun again: the first time, and at most."""
_log = logging.getLogger(__name__)

Record = TypeVar("Record", JobRecord, PodRecord, RefusalRecord, NodeRecord, PodRequests)
Key = tuple[str, str]
"""A namespace, and what identifies a record in it."""


@dataclass(frozen=True)
class ObjectKind(Generic[Record]):
    """What an informer reads: objects by a `selector`, as records with a `key` in a namespace."""

    label: str
    lister: Callable[..., Any]
    selector: dict[str, str]
    project: Callable[[Manifest], Record]
    key: Callable[[Record], str]


class Informer(Generic[Record]):
    """Keeps the records of one kind up to date by list and watch, and reports each change.

    Each record has the key (namespace, key in it): an object in one namespace may carry the name or
    the owner of another one's. `is_there` tells whether the namespace exists. `synced` is set
    once the first list is complete, or the namespace is known not to exist. `answered` is set once
    a list was complete, or was refused.
    """

    def __init__(
        self,
        kind: ObjectKind[Record],
        on_change: Callable[[Record], None],
        is_there: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._kind: ObjectKind[Record] = kind
        self._on_change: Callable[[Record], None] = on_change
        self._is_there = is_there
        self._problem = ""
        self.records: dict[Key, Record] = {}
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()

    @property
    def is_failing(self) -> bool:
        """Whether it does not work now."""
        return bool(self._problem)

    async def run(self) -> None:
        """List and watch for ever. After every error the list is read anew."""
        delay = MIN_RETRY_DELAY
        while True:
            try:
                version = await self._list()
                self.synced.set()
                self.answered.set()
                self._report("")
                delay = MIN_RETRY_DELAY
                while version:
                    version = await self._watch(version)
            except JobsError as error:
                self._report(await self._explain(error))
                if not isinstance(error, Unavailable):
                    self.answered.set()
            except Exception:  # a truncated line or an object of an unexpected shape
                _log.exception("the watch is begun again")
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY_DELAY)

    async def _explain(self, error: JobsError) -> str:
        """Return what is wrong. In a namespace that is gone nothing is left, and that is known."""
        if self._is_there is not None and isinstance(error, Refused | NotFound):
            try:
                if not await self._is_there():
                    self._replace({})
                    self.synced.set()
                    return "the namespace does not exist"
            except JobsError as unknown:
                _log.debug("whether the namespace exists is not known: %s", unknown)
        return str(error)

    def _report(self, problem: str) -> None:
        """Log a problem when it begins, changes and ends; not for each try."""
        if problem != self._problem:
            level = logging.WARNING if problem else logging.INFO
            _log.log(level, "watch of %s: %s", self._kind.label, problem or "works again")
        self._problem = problem

    async def _list(self) -> str:
        """Read all records, report the differences, and return the version to watch from."""
        records: dict[Key, Record] = {}
        query: dict[str, Any] = {
            **self._kind.selector,
            "limit": PAGE_SIZE,
            "_request_timeout": REQUEST_TIMEOUT,
        }
        while True:
            with translate_errors():
                page = await read_json(await self._kind.lister(**query))
            for item in page["items"]:
                record = self._kind.project(item)
                records[record.namespace, self._kind.key(record)] = record
            metadata = page["metadata"]
            if not metadata.get("continue"):
                break
            query["_continue"] = metadata["continue"]
        self._replace(records)
        return str(metadata["resourceVersion"])

    def _replace(self, records: dict[Key, Record]) -> None:
        """Keep these records instead of all others, and report the differences."""
        previous, self.records = self.records, records
        for key in previous.keys() | records.keys():
            if previous.get(key) != records.get(key):
                self._on_change(records[key] if key in records else previous[key])

    async def _watch(self, version: str) -> str:
        """Apply events until the watch ends. Return the version to go on from, "" to list anew."""
        with translate_errors():
            response = await self._kind.lister(
                **self._kind.selector,
                watch=True,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=WATCH_TIMEOUT,
                _request_timeout=WATCH_READ_TIMEOUT,
            )
            async with response:
                if response.status >= 400:
                    await read_json(response)  # raises
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return ""
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._apply(event["type"], self._kind.project(event["object"]))
        return version

    def _apply(self, kind: str, record: Record) -> None:
        key = record.namespace, self._kind.key(record)
        if kind != "DELETED":
            self.records[key] = record
        elif key in self.records and self.records[key].uid == record.uid:
            del self.records[key]
        self._on_change(record)
