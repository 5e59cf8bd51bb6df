"""The digest of a submission, by which a repeated one is recognised as the same."""

from __future__ import annotations

import hashlib
import json
import posixpath
from dataclasses import fields
from typing import Any, NamedTuple

from ...domain.job import Submission

_NOT_COMPARED = frozenset(
    [
        *("idempotency_key", "content", "expected_sha256", "input_digests", "packages"),
        *("group", "group_limit", "rerun_of", "results", "plan"),
    ]
)
"""Fields in which equal submissions may differ: the snapshot has its own digest."""


class Digests(NamedTuple):
    """The digest that a job's record gets now, and the one that an older version recorded."""

    current: str
    older: str


def digests_of(submission: Submission, workspace: str, snapshot_sha256: str) -> Digests:
    """Return the digests that a repeated submission has in common with the first.

    A gateway gets files instead of patterns. The next time the same pattern may match others, such
    as the first result: their names do not count. In the older digest they do.
    """
    comparable = _comparable(submission, workspace)
    sent: dict[str, Any] = {"inputs": []} if submission.input_digests else {}
    return Digests(
        _digest([{**comparable, **sent}, snapshot_sha256]), _digest([comparable, snapshot_sha256])
    )


def _comparable(submission: Submission, workspace: str) -> dict[str, Any]:
    """Return what equal submissions have in common: its paths are the same from any workspace."""
    names = (field.name for field in fields(submission) if field.name not in _NOT_COMPARED)
    output = submission.output

    def absolute(path: str) -> str:
        # Without the leading slash, as clients of a gateway send it.
        normal = posixpath.normpath(posixpath.join(workspace, path)).lstrip("/")
        return f"{normal}/" if path.endswith("/") else normal

    return {name: getattr(submission, name) for name in names} | {
        "notebook": absolute(submission.notebook),
        "inputs": [absolute(path) for path in submission.inputs],
        "output": None if output is None else absolute(output),
    }


def _digest(content: list[Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
