"""One damaged job is one damaged job: it is listed with what to do, and everybody else goes on."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.domain.job import State
from jupyter_to_job.service.reading.changes import ChangeFeed

from . import exchanges
from .victim_scene import CASES, VICTIM, WAITING, VictimScene, is_of_another_owner

WRONG: list[Any] = [None, True, 0, -1, 1.5, 1e308, "", "x", "\ud800", "../x", [], [1], {}, {"x": 1}]
WRONG += [10**30, ["x"], {"env": 1}, "2026-13-01T00:00:00.000Z", "NaN"]
"""Values that are wrong in most fields. JSON's own constants: `tests/soak/test_damage.py`."""


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in a document."""
    items: dict[Any, Any] = value if isinstance(value, dict) else {}
    items = dict(enumerate(value)) if isinstance(value, list) else items
    for key, below in items.items():
        yield (*path, key)
        yield from _paths(below, (*path, key))


def wrong_values(document: dict[str, Any]) -> Iterator[bytes]:
    """Yield the document with every field missing, and with every wrong value in it."""
    for path in _paths(document):
        for wrong in (..., *WRONG):
            changed = json.loads(json.dumps(document))
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            if wrong is ...:
                del parent[path[-1]]
            else:
                parent[path[-1]] = wrong
            yield json.dumps(changed).encode()


@pytest.mark.parametrize("case", CASES)
def test_wrong_values(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, name = CASES[case]
    scene = VictimScene(tmp_path, ended)
    sound = json.loads((scene.victim / name).read_bytes())
    for number, content in enumerate(wrong_values(sound)):
        scene.replace(name, content)
        assert scene.check() is not None or is_of_another_owner(content), content
        if number % 10 == 0:
            assert WAITING in scene.dispatch(monkeypatch), content
            scene.use()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


SPECIAL = {"pipe": _fifo, "folder": _folder, "link": _link, "socket": _socket, "gone": None}
DOCUMENTS = [
    layout.REQUEST,
    layout.SNAPSHOT,
    layout.CANCEL,
    layout.PUBLISHED,
    layout.DELIVERY,
    layout.HELD,
    layout.DELETE,
    layout.CLEARED,
    "slot.json",
    "attempt-1/outcome.json",
    "attempt-1/runner.json",
    "attempt-1/lock",
    "attempt-1/result.ipynb",
    "attempt-1/journal/00000001.jsonl",
    "attempt-1/journal",
    "attempt-1",
    "attempt-2",
]


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_special_files(
    tmp_path: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = VictimScene(tmp_path, exchanges.end)
    monkeypatch.chdir(scene.victim)  # a socket's path must be short
    path = Path(name)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    make = SPECIAL[kind]
    if make is not None:
        make(path)
    is_deleted = name == layout.DELETE and make is not None
    assert (scene.check() is None) == is_deleted
    assert WAITING in scene.dispatch(monkeypatch)
    scene.use()
    if not is_deleted:
        scene.jobs.delete(VICTIM)
    scene.check()


@pytest.mark.parametrize("name", [layout.REQUEST, f"attempt-1/{layout.OUTCOME}"])
def test_it_says_what_to_do_and_can_be_deleted(tmp_path: Path, name: str) -> None:
    scene = VictimScene(tmp_path, exchanges.end)
    (scene.victim / name).write_text("{")
    job = scene.check()
    assert job is not None and (job.state, job.reason) == (State.FAILED, "Damaged")
    assert name.rpartition("/")[2] in (job.message or "") and "deleting it" in (job.message or "")
    assert scene.jobs.get(VICTIM) == job
    scene.jobs.delete(VICTIM)
    assert VICTIM not in {job.name for job in scene.jobs.find().jobs}
    assert not scene.victim.exists()


@pytest.mark.parametrize("name", [layout.REQUEST, f"attempt-1/{layout.OUTCOME}"])
def test_what_a_newer_version_wrote_is_not_to_be_deleted(tmp_path: Path, name: str) -> None:
    scene = VictimScene(tmp_path, exchanges.end)
    document = json.loads((scene.victim / name).read_bytes())
    scene.replace(name, json.dumps({**document, "v": 99}).encode())
    job = scene.check()
    assert job is not None and (job.state, job.reason) == (State.FAILED, "Damaged")
    assert job.message is not None and job.message.endswith(
        "version 99, this reads 1. A newer Jupyter to Job wrote it: update this one."
    )
    assert "delet" not in job.message and "doctor" not in job.message
    assert scene.jobs.get(VICTIM) == job


def test_a_directory_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = VictimScene(tmp_path, lambda _: None)
    scene.victim.rename(tmp_path / "moved-aaaaaaaa")
    listed = {job.name: job for job in scene.jobs.find().jobs}
    assert f"is of the job {VICTIM}" in (listed["moved-aaaaaaaa"].message or "")
    assert scene.dispatch(monkeypatch) == [WAITING]


def test_what_is_mended_goes_on(tmp_path: Path) -> None:
    scene = VictimScene(tmp_path, lambda _: None)
    path = scene.victim / layout.REQUEST
    sound = path.read_bytes()
    path.write_text("{")
    feed = ChangeFeed(scene.exchange, scene.context.lister, scene.context.reader)
    assert {job.name: job.reason for _, job in feed.poll()}[VICTIM] == "Damaged"
    documents.write_bytes(path, sound)
    assert {job.name: job.reason for _, job in feed.poll()}[VICTIM] is None


def test_its_slot_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that cannot be read kept four CPUs of four."""
    scene = VictimScene(tmp_path, lambda _: None)
    request = scene.victim / layout.REQUEST
    document = json.loads(request.read_bytes())
    request.write_text(json.dumps({**document, "demand": {"cpu": "4"}}))
    exchanges.end(scene.victim)
    (scene.victim / "attempt-1" / layout.OUTCOME).write_text("{")
    assert scene.dispatch(monkeypatch) == [WAITING]


def test_fields_of_a_newer_version_are_ignored_at_every_depth(tmp_path: Path) -> None:
    scene = VictimScene(tmp_path, exchanges.end)
    before = scene.check()
    for name in (layout.REQUEST, f"attempt-1/{layout.OUTCOME}"):
        path = scene.victim / name
        document = json.loads(path.read_bytes())

        def grow(value: Any) -> Any:
            if isinstance(value, list):
                return [grow(item) for item in value]
            if not isinstance(value, dict):
                return value
            return {key: grow(item) for key, item in value.items()} | {"newer": {"x": [1]}}

        free = ("parameters", "env", "demand", "packages", "environment")
        kept = {name: document[name] for name in free if name in document}
        documents.write_bytes(path, json.dumps(grow(document) | kept).encode())
    assert scene.check() == before
