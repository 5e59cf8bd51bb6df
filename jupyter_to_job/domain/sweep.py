"""Sweeps: the runs that values of parameters, flavors and devices make, and their submissions."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from .errors import BadInput
from .job import Submission
from .names import job_name
from .submission_rules import require_key, validate_submission

MAX_RUNS = 10_000
"""Runs of one sweep."""


@dataclass(frozen=True)
class Run:
    """What one run of a sweep has of its own; None: what the submission says."""

    parameters: dict[str, Any] = field(default_factory=dict)
    flavor: str | None = None
    device: str | None = None

    def merged(self, other: Run) -> Run:
        """Return this run with what the other one sets."""
        return Run(
            {**self.parameters, **other.parameters},
            self.flavor if other.flavor is None else other.flavor,
            self.device if other.device is None else other.device,
        )


@dataclass(frozen=True)
class Axis:
    """The runs along one thing that a sweep varies: a parameter, the flavor, rows of a file."""

    name: str
    runs: Sequence[Run]


def combine(axes: Sequence[Axis]) -> list[Run]:
    """Return every combination of the axes' runs; the last axis varies first. Raises BadInput."""
    count = math.prod(len(axis.runs) for axis in axes)
    if count > MAX_RUNS:
        raise BadInput(
            f"The combinations are {count} runs, and {MAX_RUNS} is the most.", "Leave some out."
        )
    return [_merged(runs) for runs in itertools.product(*(axis.runs for axis in axes))]


def zip_together(axes: Sequence[Axis]) -> list[Run]:
    """Return the axes' first runs merged, then their second ones, and so on. Raises BadInput.

    An axis with a single run goes with all of them.
    """
    lengths = {axis.name: len(axis.runs) for axis in axes if len(axis.runs) > 1}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        raise BadInput(
            f"Values that are taken together have to be equally many: {counts}.",
            "A grid combines them all.",
        )
    count = max(lengths.values(), default=1)
    if count > MAX_RUNS:
        raise BadInput(f"These are {count} runs, and {MAX_RUNS} is the most.", "Leave some out.")
    return [_merged([axis.runs[i % len(axis.runs)] for axis in axes]) for i in range(count)]


def group_name(notebook: str, key: str | None = None, label: str | None = None) -> str:
    """Return a name for the group of a sweep: with an idempotency key always the same one.

    `label` replaces the notebook's stem in it.
    """
    stem = label or notebook.rpartition("/")[2].removesuffix(".ipynb")
    return job_name(notebook, owner="", key=key, label=f"{stem}-sweep")


def submissions_of(submission: Submission, runs: Sequence[Run]) -> list[Submission]:
    """Return the submission of each run. With an idempotency key each has one of its own.

    That key depends on what the run has of its own, and not on its place: a repeated sweep with
    more runs adds those. Equal runs are told apart by their number. Raises BadInput.
    """
    require_key(submission.idempotency_key)
    submissions, counts = [], Counter[str]()
    for run in runs:
        key = submission.idempotency_key
        if key is not None:
            text = json.dumps([key, run.parameters, run.flavor, run.device], sort_keys=True)
            counts[text] += 1
            digest = hashlib.sha256(f"{text} {counts[text]}".encode(errors="surrogatepass"))
            key = digest.hexdigest()
        run_submission = replace(
            submission,
            parameters={**submission.parameters, **run.parameters},
            flavor=submission.flavor if run.flavor is None else run.flavor,
            device=submission.device if run.device is None else run.device,
            idempotency_key=key,
        )
        validate_submission(run_submission)
        submissions.append(run_submission)
    return submissions


def _merged(runs: Sequence[Run]) -> Run:
    return reduce(Run.merged, runs, Run())
