"""Names inside a job's directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

REQUEST = "request.json"
ORIGIN = "origin.json"
JOB = "job.json"
"""The Kubernetes Job that runs it."""
SNAPSHOT = "snapshot.ipynb"
INPUTS = "inputs"
CANCEL = "cancel.json"
DELETE = "delete.json"
STOP = "stop.json"
"""Why the controller ends a job that cannot start."""
PUBLISHED = "published.json"
"""The notebook is in the workspace, and what the run created follows."""
DELIVERY = "delivery.json"
HELD = "held.json"
"""Why the last try to publish failed, as long as there is no delivery.json."""
DELIVERABLE = "deliverable.json"
"""What is to be published of a job that has ended: a gateway makes it when it is read."""
CLEARED = "cleared.json"
NOTIFY = "notify.json"
"""Hooks may have to be told of the job."""
NOTIFICATIONS = "notifications.json"
"""What hooks were told of the job, and what was given up."""

RUNNER = "runner.json"
POD = "pod.json"
"""The cluster's word on how the pod of an attempt ended."""
LOCK = "lock"
FINISHING = "finish.lock"
JOURNAL = "journal"
OUTCOME = "outcome.json"
SENT_OUTCOME = "sent-outcome.json"
"""On a gateway, the outcome as the agent sent it: the attempt has ended, and is being finished."""
LEFT_OUT = "left-out.json"
"""On a gateway, the message that says which artifacts it did not take."""
CREATED = "created.json"
"""On a gateway, the files of a killed run that its agent sends."""
RESULT = "result.ipynb"
ARTIFACTS = "artifacts"
SCRATCH = "work"
"""Where an isolated run works; gone once its artifacts were taken out of it."""

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
