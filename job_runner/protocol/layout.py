"""Names inside a job's directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

REQUEST = "request.json"
ORIGIN = "origin.json"
SNAPSHOT = "snapshot.ipynb"
INPUTS = "inputs"
CANCEL = "cancel.json"
DELETE = "delete.json"
DELIVERY = "delivery.json"
HELD = "held.json"
"""Why the last try to publish failed, as long as there is no delivery.json."""
CLEARED = "cleared.json"

RUNNER = "runner.json"
LOCK = "lock"
FINISHING = "finish.lock"
JOURNAL = "journal"
OUTCOME = "outcome.json"
RESULT = "result.ipynb"
ARTIFACTS = "artifacts"

_ATTEMPT = re.compile(r"attempt-([1-9]\d*)")


def attempt_dir(job_dir: Path, number: int) -> Path:
    """Return the directory of attempt `number` (from 1)."""
    return job_dir / f"attempt-{number}"


def attempts(job_dir: Path) -> list[int]:
    """Return the numbers of the attempts that exist, ascending."""
    try:
        with os.scandir(job_dir) as entries:
            return attempt_numbers(entry.name for entry in entries)
    except FileNotFoundError:
        return []


def attempt_numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of the attempts among the names in a job's directory, ascending."""
    return sorted(int(m[1]) for m in map(_ATTEMPT.fullmatch, names) if m)
