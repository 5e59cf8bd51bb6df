"""The server-sent events of a gateway, as its clients read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ..domain.job import Deleted

DELETED = "deleted"
"""Name of the server-sent events for a deleted job; events with a Job have no name."""


def parse_events(lines: Iterable[str]) -> Iterator[dict[str, Any] | Deleted | None]:
    """Yield the events of a stream: the documents of jobs, Deleted, and None for a heartbeat."""
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            document = json.loads(line.removeprefix("data: "))
            yield Deleted(document["name"]) if kind == DELETED else document
            kind = ""
        elif line.startswith(":"):
            yield None
