"""Submitting again what was frozen, until retention takes it; and looking before submitting."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_to_job.domain.errors import (
    BadInput,
    Cleared,
    Damaged,
    JobsError,
    NeverFits,
    NotFound,
    UnknownChoice,
)
from jupyter_to_job.domain.job import Asked, Changes, DeliveryState, State, Submission
from jupyter_to_job.exchange.retention import Policy, enforce

from .. import notebooks
from .place import Place

NOTEBOOK = "dir/Train model.ipynb"
ON_LOCAL = pytest.mark.parametrize("kind", ["local"], indirect=True, scope="session")
"""For what takes a machine and its kernels; `memory` runs no code, and everything fits there."""


@pytest.mark.core
def test_rerun_is_the_job_as_it_was_frozen(place: Place) -> None:
    """Snapshot and inputs come from the exchange; what is on the disk by then does not matter."""
    data = place.workspace / "data.csv"
    data.write_text("then")
    low, high = (2, 5) if place.has_queue else (0, 0)
    first = place.decided(
        place.submit(
            inputs=("data.csv",), parameters={"a": 1, "b": [2]}, env={"TOKEN": "t", "X": "1"},
            priority=low, max_runtime=600, name="label",
        ).name
    )  # fmt: skip
    data.write_text("now")
    (place.workspace / NOTEBOOK).unlink()
    changes = Changes(parameters={"b": None, "c": "3"}, env={"X": "2"}, priority=high)
    again = place.decided(place.service.rerun(first.name, changes).name)
    assert again.name != first.name and again.name.startswith("label-")
    assert again.parameters == {"a": 1, "b": None, "c": "3"}
    assert (again.priority, again.max_runtime, again.inputs) == (high, 600, ("data.csv",))
    assert (again.flavor, again.device, again.notebook) == (first.flavor, first.device, NOTEBOOK)
    assert (again.state, again.delivery.state) == (State.SUCCEEDED, DeliveryState.DELIVERED)
    assert "# kept" in notebooks.printed(place.result(again))
    assert place.frozen_input(again.name, "data.csv") == b"then"
    assert place.exchange.request(again.name).env == {"TOKEN": "t", "X": "2"}


@pytest.mark.core
def test_only_what_the_user_set_is_taken_over(make_place: Callable[..., Place]) -> None:
    """The flavor's time limit is none of the user's. What was asked for is told to every reader."""
    place = make_place(hold="queued")
    plain = place.submit()
    assert plain.asked == Asked()
    job = place.submit(
        inputs=("dir",), max_runtime=10**6, name="Label", isolated=True, parameters={"a": 1, "b": 2}
    )
    asked = job.asked
    assert asked is not None and (asked.max_runtime, asked.isolated) == (10**6, True)
    assert (asked.name, len(asked.inputs)) == ("Label", 1)
    again = place.service.rerun(job.name, Changes(unset=("max_runtime", "parameters.a")))
    assert (again.parameters, again.max_runtime) == ({"b": 2}, plain.max_runtime)
    assert again.asked == replace(asked, max_runtime=None)
    assert place.service.rerun(job.name, Changes()).asked == asked
    with pytest.raises(BadInput):
        place.service.rerun(job.name, Changes(unset=("parameters.c",)))


@pytest.mark.core
def test_the_jobs_of_one_notebook(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="queued")
    notebooks.write(place.workspace / "other.ipynb", "1")
    names = [place.submit().name, place.submit(notebook="other.ipynb").name, place.submit().name]
    found = place.service.find(notebook=NOTEBOOK)
    assert [job.name for job in found.jobs] == [names[2], names[0]]
    (newest,) = place.service.find(limit=1, notebook="dir/../other.ipynb").jobs
    assert newest.name == names[1]
    assert place.service.find(notebook="dir/none.ipynb").jobs == []


@pytest.mark.core
def test_a_rerun_is_checked_like_a_submission(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="queued")
    first = place.held_job()
    before = set(place.exchange.jobs())
    with pytest.raises(UnknownChoice):
        place.service.rerun(first.name, Changes(flavor="enormous"))
    with pytest.raises(BadInput):
        place.service.rerun(first.name, Changes(output="../outside.ipynb"))
    assert set(place.exchange.jobs()) == before
    other = place.service.rerun(first.name, Changes(name="other"))
    assert other.name.startswith("other-")


@pytest.mark.core
def test_rerun_with_the_same_key_is_one_job(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="queued")
    first = place.held_job()
    changes = Changes(parameters={"a": 1}, idempotency_key="again")
    names = {place.service.rerun(first.name, changes).name for _ in range(3)}
    assert len(names) == 1 and first.name not in names
    with pytest.raises(BadInput, match="key"):
        place.service.rerun(first.name, replace(changes, idempotency_key=""))


@ON_LOCAL
def test_a_rerun_looks_for_its_kernel_where_it_runs(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the environment of then: the one of now need not know that kernel."""
    theirs = tmp_path / "share" / "kernels" / "theirs"
    shutil.copytree(Path(sys.prefix, "share/jupyter/kernels/python3"), theirs)
    notebooks.write(place.workspace / "theirs.ipynb", "print('# kept')", kernel="theirs")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    first, _ = place.service_of("me").submit(Submission("theirs.ipynb"))
    monkeypatch.delenv("JUPYTER_PATH")
    with pytest.raises(UnknownChoice):
        place.service_of("me").submit(Submission("theirs.ipynb"))
    again = place.service_of("me").rerun(first.name, Changes())
    assert place.decided(again.name).state is State.SUCCEEDED


@pytest.mark.core
def test_rerun_of_somebody_elses_job(shared: Place) -> None:
    for service, name in (
        (shared.service_of("someone else"), shared.the_job().name),
        (shared.service, "no-such-job-abcd2345"),
    ):
        with pytest.raises(NotFound):
            service.rerun(name, Changes())


def test_a_rerun_of_an_input_that_changed_in_the_exchange(place: Place) -> None:
    (place.workspace / "data.csv").write_text("then")
    name = place.decided(place.submit(inputs=("data.csv",)).name).name
    (place.exchange.directory(name) / "inputs" / "data.csv").write_text("nope")
    jobs = place.exchange.jobs()
    with pytest.raises(Damaged, match=r"The input data\.csv is not what was submitted\."):
        place.service.rerun(name, Changes())
    assert place.exchange.jobs() == jobs


def test_after_its_retention_a_job_cannot_be_rerun(place: Place) -> None:
    ended = place.decided(place.submit().name)
    assert enforce(place.exchange, Policy(3600)) == []
    assert enforce(place.exchange, Policy(3600), time.time() + 3601) == [ended.name]
    service = place.service
    for act in (service.logs, service.journal, service.notebook):
        with pytest.raises(Cleared):
            act(ended.name)
    with pytest.raises(Cleared, match="Kept for 1 h after delivery; gone since"):
        service.rerun(ended.name, Changes())
    left = service.get(ended.name)
    assert (left.state, left.delivery, left.usage) == (ended.state, ended.delivery, ended.usage)
    assert service.find().jobs == [left]
    assert "# kept" in notebooks.printed(place.result(left))


# Before submitting --------------------------------------------------------------------------


def test_preflight_of_what_is_fine(place: Place) -> None:
    tagged = notebooks.parameters("a = 1  # how many\nb: str = 'x'")
    notebooks.write(place.workspace / "tagged.ipynb", tagged, "a")
    (place.workspace / "data").mkdir()
    (place.workspace / "data" / "a.csv").write_text("abc")
    found = place.service.preflight(
        Submission("tagged.ipynb", inputs=("data",), parameters={"a": 2, "typo": 1})
    )
    assert [(p.name, p.default, p.help) for p in found.parameters] == [
        ("a", "1", "how many"), ("b", "'x'", ""),
    ]  # fmt: skip
    assert [(i.path, i.size) for i in found.inputs] == [("data/a.csv", 3)]
    assert [(p.code, p.blocking) for p in found.problems] == [("unknown_parameter", False)]
    assert "typo" in found.problems[0].message
    assert not found.isolated
    assert place.exchange.jobs() == frozenset()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (Submission("missing.ipynb"), "bad_notebook"),
        (Submission("notes.txt"), "bad_notebook"),
        (Submission(NOTEBOOK, flavor="enormous"), "unknown_choice"),
        (Submission(NOTEBOOK, inputs=("missing.csv",)), "missing_input"),
        (Submission(NOTEBOOK, output="../outside.ipynb"), "bad_input"),
        (Submission(NOTEBOOK, expected_sha256="0" * 64), "stale"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_blocks_is_what_submit_refuses(place: Place, asked: Submission, code: str) -> None:
    (place.workspace / "notes.txt").write_text("notes")
    blocking = [p for p in place.service.preflight(asked).problems if p.blocking]
    assert [p.code for p in blocking] == [code]
    assert all(p.message for p in blocking)
    with pytest.raises(JobsError) as caught:
        place.submit(asked.notebook, **{
            "flavor": asked.flavor, "inputs": asked.inputs, "output": asked.output,
            "expected_sha256": asked.expected_sha256,
        })  # fmt: skip
    assert caught.value.message == blocking[0].message


def test_several_problems_at_once(place: Place) -> None:
    asked = Submission("missing.ipynb", flavor="enormous", inputs=("missing.csv",))
    codes = {p.code for p in place.service.preflight(asked).problems}
    assert codes == {"bad_notebook", "unknown_choice", "missing_input"}


def test_a_result_that_would_be_held(place: Place) -> None:
    (problem,) = place.service.preflight(Submission(NOTEBOOK, output="gone/x.ipynb")).problems
    assert (problem.code, problem.blocking) == ("not_writable", False)


def test_preflight_looks_at_the_open_document(place: Place) -> None:
    path = notebooks.write(place.workspace / "open.ipynb", notebooks.parameters("a = 1"))
    content = path.read_bytes().replace(b"a = 1", b"b = 1")
    found = place.service.preflight(Submission("open.ipynb", content=content))
    assert [p.name for p in found.parameters] == ["b"]
    asked = Submission("open.ipynb", content=b"{}", parameters={"a": math.nan})
    assert [p.code for p in place.service.preflight(asked).problems] == [
        "bad_notebook", "bad_input",
    ]  # fmt: skip


def test_modules_of_the_callers_folder_are_not_imported(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who submits from a folder with a `papermill.py` does not mean that to be run."""
    (tmp_path / "papermill.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert place.service.preflight(Submission(NOTEBOOK)).problems == ()


@ON_LOCAL
def test_what_never_fits_is_refused_and_says_what_would(place: Place) -> None:
    asked = Submission(NOTEBOOK, flavor="large")
    with pytest.raises(NeverFits) as caught:
        place.service.submit(asked)
    assert "What fits here: small" in caught.value.hint
    (problem,) = place.service.preflight(asked).problems
    assert (problem.code, problem.hint, problem.blocking) == (
        "never_fits", caught.value.hint, True
    )  # fmt: skip
    assert place.exchange.jobs() == frozenset()


@ON_LOCAL
def test_a_kernel_that_is_not_there(place: Place) -> None:
    notebooks.write(place.workspace / "cobol.ipynb", "1", kernel="cobol")
    (problem,) = place.service.preflight(Submission("cobol.ipynb")).problems
    assert (problem.code, problem.blocking) == ("no_kernel", True)
    with pytest.raises(UnknownChoice):
        place.submit("cobol.ipynb")
