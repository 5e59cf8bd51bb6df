"""Every error of the tree has its exit code, its status and its way back from REST."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_to_job.cli import exits
from jupyter_to_job.domain import errors
from jupyter_to_job.domain.job import Job, State

EXITS = {
    "bad_input": 2, "bad_notebook": 2, "bad_catalog": 2, "unknown_choice": 2, "not_found": 3,
    "refused": 4, "never_fits": 4, "unavailable": 5, "conflict": 2, "stale": 2, "too_large": 2,
    "damaged": 1, "error": 1,
}  # fmt: skip


def tree(root: type[errors.JobsError] = errors.JobsError) -> Iterator[type[errors.JobsError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("code", EXITS)
def test_exit_code(code: str) -> None:
    assert exits.code_of(errors.BY_CODE[code]("what happened")) == EXITS[code]


def test_codes_are_complete_and_unique() -> None:
    assert set(errors.BY_CODE) == set(EXITS)
    codes = [cls.code for cls in tree()]
    assert len(codes) == len(set(codes))


def test_an_error_says_what_happened_and_what_to_do() -> None:
    assert str(errors.NotFound("There is no job.", "List them.")) == "There is no job. List them."
    assert str(errors.NotFound("There is no job.")) == "There is no job."


def test_only_what_may_pass_is_retried() -> None:
    assert {cls.code for cls in tree() if cls.retryable} == {"unavailable"}


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["succeeded"], 0),
        (["succeeded", "succeeded"], 0),
        (["failed"], 1),
        (["cancelled"], 1),
        (["succeeded", "failed"], 1),
    ],
)
def test_exit_code_of_ended_jobs(states: list[str], code: int) -> None:
    asked = {
        "name": "a-abcd2345", "owner": "me", "notebook": "a.ipynb", "flavor": "small",
        "device": "cpu", "parameters": {}, "isolated": False, "output": None,
        "max_runtime": None, "priority": 0, "backend": "local",
    }  # fmt: skip
    jobs = [Job.from_json({**asked, "state": State(state)}) for state in states]
    assert exits.code_for(jobs) == code
