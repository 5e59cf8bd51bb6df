"""From a submission to a delivered notebook, and what is refused."""

from __future__ import annotations

import hashlib
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from job_runner.protocol.progress import Progress
from jupyter_to_job.domain.errors import (
    BadInput,
    BadNotebook,
    Conflict,
    JobsError,
    Stale,
    UnknownChoice,
)
from jupyter_to_job.domain.job import Delivery, DeliveryState, State, Submission
from jupyter_to_job.domain.names import is_job_name, job_name

from .. import notebooks
from .place import Place

CONTENT = json.dumps(
    {"cells": [], "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4,
     "nbformat_minor": 5}
).encode()  # fmt: skip


def nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.core
def test_submitted_to_delivered(place: Place) -> None:
    source = place.workspace / "dir" / "Train model.ipynb"
    before = source.read_bytes()
    priority = 3 if place.has_queue else 0
    job = place.submit(priority=priority)
    assert is_job_name(job.name) and job.name.startswith("train-model-")
    assert job.state in (State.QUEUED, State.STARTING, State.RUNNING, State.SUCCEEDED)
    assert place.exchange.request(job.name).packages is None  # the run is in their environment
    ended = place.decided(job.name)
    assert ended.state is State.SUCCEEDED
    assert (ended.reason, ended.message, ended.priority) == (None, None, priority)
    assert ended.delivery == Delivery(DeliveryState.DELIVERED, f"dir/{job.name}.ipynb")
    assert ended.progress == Progress(2, 2, None)
    assert ended.submitted and ended.started and ended.finished
    assert ended.submitted <= ended.started <= ended.finished
    assert "# kept" in notebooks.printed(place.result(ended))
    assert {p.name for p in source.parent.iterdir()} == {source.name, f"{job.name}.ipynb"}
    assert source.read_bytes() == before


@pytest.mark.core
def test_the_snapshot_is_what_was_there_at_submission(place: Place) -> None:
    source = place.workspace / "dir" / "Train model.ipynb"
    frozen = source.read_bytes()
    job = place.submit()
    source.write_text("{}")
    assert place.exchange.read(job.name, "snapshot.ipynb") == frozen


@pytest.mark.core
def test_the_same_key_is_the_same_job(place: Place) -> None:
    asked = Submission("dir/Train model.ipynb", idempotency_key="once")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: place.service.submit(asked), range(4)))
    assert len({job.name for job, _ in answers}) == 1
    assert sorted(created for _, created in answers) == [False, False, False, True]
    name = answers[0][0].name
    place.decided(name)
    again, created = place.service.submit(asked)
    assert (again.name, created) == (name, False)
    assert place.the_job() == again
    assert len(list((place.workspace / "dir").iterdir())) == 2


@pytest.mark.core
def test_the_same_key_for_something_else_is_a_conflict(place: Place) -> None:
    asked = Submission("dir/Train model.ipynb", idempotency_key="once")
    place.service.submit(asked)
    for other in (replace(asked, parameters={"a": 1}), replace(asked, name="label")):
        with pytest.raises(Conflict):
            place.service.submit(other)
    notebooks.write(place.workspace / "dir" / "Train model.ipynb", "edited")
    with pytest.raises(Conflict):
        place.service.submit(asked)
    assert len(place.exchange.jobs()) == 1


@pytest.mark.core
def test_a_key_counts_for_one_owner_and_one_notebook(place: Place) -> None:
    notebooks.write(place.workspace / "other.ipynb", "1")
    asked = Submission("dir/Train model.ipynb", idempotency_key="once")
    for service, submission in (
        (place.service, asked),
        (place.service, replace(asked, notebook="other.ipynb")),
        (place.service_of("someone else"), asked),
    ):
        assert service.submit(submission)[1]
    assert len(place.exchange.jobs()) == 3


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (Submission("dir/Train model.ipynb", flavor="enormous"), UnknownChoice),
        (Submission("dir/Train model.ipynb", device="abacus"), UnknownChoice),
        (Submission("dir/missing.ipynb"), BadNotebook),
        (Submission("dir"), BadNotebook),
        (Submission("../exchange.ipynb"), BadInput),
        (Submission("/etc/passwd"), BadInput),
        (Submission("dir/Train model.ipynb", output="../result.ipynb"), BadInput),
        (Submission("dir/Train model.ipynb", output="/tmp/result.ipynb"), BadInput),
        (Submission("notes.txt"), BadNotebook),
        (Submission("dir/Train model.ipynb", expected_sha256="0" * 64), Stale),
        (Submission("dir/Train model.ipynb", inputs=("missing.csv",)), BadInput),
        (Submission("dir/Train model.ipynb", inputs=("../exchange",)), BadInput),
        (Submission("dir/Train model.ipynb", inputs=("\ud800",)), BadInput),
        (Submission("dir/Train model.ipynb", output="\ud800"), BadInput),
        (Submission("\ud800.ipynb"), BadInput),
        (Submission("dir/Train model.ipynb", parameters={"a": [{"b": math.nan}]}), BadInput),
        (Submission("dir/Train model.ipynb", parameters={"a": -math.inf}), BadInput),
        (Submission("dir/Train model.ipynb", parameters={"a": nested(101)}), BadInput),
        (Submission("dir/Train model.ipynb", parameters={"a": nested(900)}), BadInput),
        (Submission("dir/Train model.ipynb", parameters={"a b": 1}), BadInput),
        (Submission("dir/Train model.ipynb", env={"A=B": "x"}), BadInput),
        (Submission("dir/Train model.ipynb", env={"": "x"}), BadInput),
        (Submission("dir/Train model.ipynb", env={"A": "x\0"}), BadInput),
        (Submission("dir/Train model.ipynb", env={"A": "\ud800"}), BadInput),
        (Submission("dir/Train model.ipynb", idempotency_key=""), BadInput),
        (Submission("../outside.ipynb", content=CONTENT), BadInput),
        (Submission("link/outside.ipynb", content=CONTENT), BadInput),
        (Submission("dir", content=CONTENT), BadNotebook),
        (Submission("gone/a.ipynb", content=CONTENT), BadNotebook),
        (Submission("dir/Train model.ipynb", content=b"{}"), BadNotebook),
    ],
    ids=lambda value: "" if isinstance(value, Submission) else value.__name__,
)
def test_refused_at_once(place: Place, asked: Submission, error: type[JobsError]) -> None:
    (place.workspace / "notes.txt").write_text("notes")
    (place.workspace / "link").symlink_to(place.workspace.parent)
    with pytest.raises(error) as caught:
        place.service.submit(asked)
    assert caught.value.message
    assert "\0" not in str(caught.value)
    assert place.exchange.jobs() == frozenset()


def test_a_link_out_of_the_workspace_is_refused(place: Place, tmp_path: Path) -> None:
    notebooks.write(tmp_path / "secret.ipynb", "1")
    (place.workspace / "link.ipynb").symlink_to(tmp_path / "secret.ipynb")
    with pytest.raises(BadInput):
        place.submit("link.ipynb")


def test_an_open_document_goes_before_what_is_on_disk(place: Place) -> None:
    """Also one that was never saved; and the file stays as it is."""
    source = place.workspace / "dir" / "Train model.ipynb"
    before = source.read_bytes()
    edited = json.loads(before)
    edited["cells"][0]["source"] = "# kept\nprint('# kept, edited')"
    content = json.dumps(edited).encode()
    for notebook in ("dir/Train model.ipynb", "dir/new.ipynb"):
        asked = Submission(notebook, content=content, idempotency_key="open")
        job, created = place.service.submit(asked)
        assert created and place.service.submit(asked)[1] is False
        assert place.exchange.read(job.name, "snapshot.ipynb") == content
        assert "edited" in notebooks.printed(place.result(place.decided(job.name)))
        with pytest.raises(Conflict):
            place.service.submit(replace(asked, content=CONTENT))
    assert source.read_bytes() == before
    assert not (place.workspace / "dir" / "new.ipynb").exists()


def test_parameters_of_any_depth_that_is_meant(place: Place) -> None:
    deep = {"a": nested(100), "b": {"c": [1e300, None, "\ud800"]}}
    assert place.service.get(place.submit(parameters=deep).name).parameters == deep


def test_names_that_are_no_utf_8(place: Place) -> None:
    """What a command line hands over of a file, or a key, in another encoding."""
    notebooks.write(place.workspace / "x.ipynb", "print('# kept')").rename(
        place.workspace / "\udce4.ipynb"
    )
    asked = Submission("\udce4.ipynb", idempotency_key="\udce4")
    assert place.service.submit(asked)[0].name == place.service.submit(asked)[0].name


def test_inputs_are_frozen_with_their_paths(place: Place) -> None:
    data = place.workspace / "data"
    (data / "deep").mkdir(parents=True)
    (data / "a.csv").write_text("a")
    (data / "deep" / "b.csv").write_text("b")
    job = place.submit(inputs=("data", "*/a.csv"))
    (data / "a.csv").write_text("changed")
    assert job.inputs == ("data/a.csv", "data/deep/b.csv")
    assert place.exchange.read(job.name, "inputs/data/a.csv") == b"a"
    recorded = {i.path: i.sha256 for i in place.exchange.request(job.name).inputs}
    assert recorded["data/deep/b.csv"] == hashlib.sha256(b"b").hexdigest()


@pytest.mark.core
def test_expected_digest(place: Place) -> None:
    data = (place.workspace / "dir" / "Train model.ipynb").read_bytes()
    job = place.submit(expected_sha256=hashlib.sha256(data).hexdigest())
    assert place.exchange.request(job.name).snapshot_sha256 == hashlib.sha256(data).hexdigest()


def test_a_name_that_is_taken_is_drawn_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([b"aaaaa", b"aaaaa", b"bbbbb"])
    drawn = SimpleNamespace(token_bytes=lambda _: next(draws))
    monkeypatch.setattr("jupyter_to_job.domain.names.secrets", drawn)
    assert place.submit().name != place.submit().name


def test_the_name_is_known_before(place: Place) -> None:
    source = str(place.workspace / "dir" / "Train model.ipynb")
    expected = job_name(source, owner="me", key="once")
    assert place.submit(idempotency_key="once").name == expected
