"""The digest of a submission, by which a repeated one is recognised as the same."""

from __future__ import annotations

import hashlib
import json
import posixpath
from dataclasses import fields
from typing import Any, NamedTuple

from ...domain.job import Submission
from ...exchange import Request

_NOT_COMPARED = frozenset(
    [
        *("idempotency_key", "content", "expected_sha256", "input_digests", "packages"),
        *("group", "group_limit", "rerun_of", "results", "plan"),
    ]
)
"""Fields in which equal submissions may differ: the snapshot has its own digest."""


class Digests(NamedTuple):
    """The digest that a job's record gets now, and the one that an older version recorded.

    `sent_files` are the names of the files that a client of a gateway sends, else None.
    """

    current: str
    older: str
    sent_files: frozenset[str] | None

    def match(self, request: Request) -> bool:
        """Tell whether the same submission made a request, maybe when there were fewer files."""
        if request.digest != self.current or self.sent_files is None:
            return request.digest == self.older
        return self.sent_files.issuperset(
            _absolute(request.workspace, file.path) for file in request.inputs
        )


def digests_of(submission: Submission, workspace: str, snapshot_sha256: str) -> Digests:
    """Return the digests that a repeated submission has in common with the first.

    A gateway gets files instead of patterns. The next time the same pattern may match more of them,
    such as the first result, so their names are no part of the digest. In the older one they are.
    """
    comparable = _comparable(submission, workspace)
    older = _digest([comparable, snapshot_sha256])
    if not submission.input_digests:
        return Digests(older, older, None)
    current = _digest([{**comparable, "inputs": True}, snapshot_sha256])
    return Digests(current, older, frozenset(comparable["inputs"]))


def _comparable(submission: Submission, workspace: str) -> dict[str, Any]:
    """Return what equal submissions have in common: its paths are the same from any workspace."""
    names = (field.name for field in fields(submission) if field.name not in _NOT_COMPARED)
    output = submission.output
    return {name: getattr(submission, name) for name in names} | {
        "notebook": _absolute(workspace, submission.notebook),
        "inputs": [_absolute(workspace, path) for path in submission.inputs],
        "output": None if output is None else _absolute(workspace, output),
    }


def _absolute(workspace: str, path: str) -> str:
    """Return a path without its leading slash, as clients of a gateway send it."""
    normal = posixpath.normpath(posixpath.join(workspace, path)).lstrip("/")
    return f"{normal}/" if path.endswith("/") else normal


def _digest(content: list[Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
