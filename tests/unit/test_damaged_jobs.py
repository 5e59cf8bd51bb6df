"""One damaged job is one damaged job: it is listed with what to do, and everybody else goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.backends.local.backend import LocalBackend
from jupyter_to_job.backends.local.hosts import HostWatch
from jupyter_to_job.backends.local.slots import Machine
from jupyter_to_job.dispatcher import loop
from jupyter_to_job.dispatcher.loop import Dispatcher
from jupyter_to_job.dispatcher.processes import Processes
from jupyter_to_job.domain.errors import JobsError
from jupyter_to_job.domain.job import Changes, Job, State
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.reading.changes import ChangeFeed
from jupyter_to_job.service.submitting.submission import Caller

from . import exchanges

VICTIM = "victim-aaaaaaaa"
WAITING = "waiting-aaaaaaaa"
DONE = "done-aaaaaaaa"
CAPACITY = "cpu=4,memory=8Gi"
BIT_FLIPS = 10_000

WRONG: list[Any] = [None, True, 0, -1, 1.5, 1e308, "", "x", "\ud800", "../x", [], [1], {}, {"x": 1}]
WRONG += [10**30, ["x"], {"env": 1}, "2026-13-01T00:00:00.000Z", "NaN"]
"""Values that are wrong in most fields. JSON's own constants are among the bit flips."""


class Undispatched(LocalBackend):
    """The local backend, whose dispatcher is the test's."""

    def notify(self, *jobs: str) -> None:
        """Start nothing."""


class NoProcesses(Processes):
    """A dispatcher's processes that are noted and not started."""

    def __init__(self, exchange: FileExchange, host: str) -> None:
        super().__init__(exchange, host)
        self.begun: list[str] = []

    def start_runner(self, request: Any, variables: Any) -> None:
        self.begun.append(request.name)

    def finish(self, job: str, reason: str, message: str) -> None:
        self.begun.append(job)

    def deliver_or_remove(self, job: str) -> bool:
        self.begun.append(job)
        return True


class Scene:
    """An exchange with a victim, a job that waits, and one that is delivered."""

    def __init__(self, root: Path, ended: Callable[[Path], object]) -> None:
        self.exchange = FileExchange(root)
        backend = Undispatched(self.exchange, CAPACITY)
        self.context = ServiceContext(self.exchange, backend, load_catalog)
        self.jobs = JobService(self.context, Caller("me", "/w"), wake=lambda *_: None)
        self.victim = exchanges.add(self.exchange, VICTIM, parameters={"lr": 0.1}, backend="local")
        ended(self.victim)
        exchanges.add(self.exchange, WAITING, backend="local")
        exchanges.settle(self.exchange, DONE)

    def replace(self, name: str, content: bytes) -> None:
        """Change a document, in a directory that the index therefore does not know."""
        (self.victim / name).write_bytes(content)
        os.utime(self.victim)

    def check(self) -> Job | None:
        """Use everything that reads all jobs; return the victim as it is listed."""
        listed = {job.name: job for job in self.jobs.find(limit=500).jobs}
        assert listed[WAITING].state is State.QUEUED and listed[WAITING].position in (1, 2)
        assert listed[DONE].state is State.SUCCEEDED
        json.dumps([job.to_json() for job in listed.values()])
        feed = ChangeFeed(self.exchange, self.context.lister, self.context.reader)
        assert {job.name for _, job in feed.poll()} >= {WAITING}
        assert self.jobs.get(WAITING).position in (1, 2)
        return listed.get(VICTIM)

    def use(self) -> None:
        """Use the victim by every command: each answers, or says what is wrong."""
        jobs = self.jobs
        for command in (jobs.get, jobs.logs, jobs.journal, jobs.notebook, jobs.deliver):
            answer(command, VICTIM)
        answer(jobs.rerun, VICTIM, Changes())
        answer(jobs.cancel, VICTIM)

    def dispatch(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Have a dispatcher do a round; return the jobs that it did something for."""
        monkeypatch.setattr(loop, "Processes", NoProcesses)
        host = socket.gethostname()
        made = Dispatcher(self.exchange, Machine(CAPACITY), host, HostWatch(self.exchange.root))
        made.poll(set())
        processes = made._processes
        assert isinstance(processes, NoProcesses)
        return processes.begun


def answer(command: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return command(*arguments)
    except JobsError as error:
        return error


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


def _deliver(directory: Path) -> None:
    exchanges.end(directory)
    exchanges.deliver(directory)


def _nothing(_: Path) -> None:
    pass


def is_of_another_owner(content: bytes) -> bool:
    """Tell whether a request is somebody else's now: then it is none of this reader's."""
    try:
        owner = json.loads(content).get("owner")
    except (ValueError, AttributeError):
        return False
    return isinstance(owner, str) and owner != "me"


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "request": (_nothing, layout.REQUEST),
    "request of an ended job": (exchanges.end, layout.REQUEST),
    "outcome": (exchanges.end, f"attempt-1/{layout.OUTCOME}"),
    "runner": (exchanges.end, f"attempt-1/{layout.RUNNER}"),
    "delivery": (_deliver, layout.DELIVERY),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_values(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, name = CASES[case]
    scene = Scene(tmp_path, ended)
    sound = json.loads((scene.victim / name).read_bytes())
    for number, content in enumerate(wrong_values(sound)):
        scene.replace(name, content)
        assert scene.check() is not None or is_of_another_owner(content), content
        if number % 10 == 0:
            assert WAITING in scene.dispatch(monkeypatch), content
            scene.use()


@pytest.mark.parametrize("case", CASES)
def test_flipped_bits(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, name = CASES[case]
    scene = Scene(tmp_path, ended)
    sound, rng = (scene.victim / name).read_bytes(), random.Random(case)
    for number in range(BIT_FLIPS // len(CASES)):
        bit = rng.randrange(8 * len(sound))
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        scene.replace(name, bytes(flipped))
        is_listed = scene.check() is not None
        assert is_listed or is_of_another_owner(bytes(flipped)), bytes(flipped)
        if number % 50 == 0:
            assert WAITING in scene.dispatch(monkeypatch), bytes(flipped)
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
    scene = Scene(tmp_path, exchanges.end)
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
    scene = Scene(tmp_path, exchanges.end)
    (scene.victim / name).write_text("{")
    job = scene.check()
    assert job is not None and (job.state, job.reason) == (State.FAILED, "Damaged")
    assert name.rpartition("/")[2] in (job.message or "") and "delete" in (job.message or "")
    assert scene.jobs.get(VICTIM) == job
    scene.jobs.delete(VICTIM)
    assert VICTIM not in {job.name for job in scene.jobs.find().jobs}
    assert not scene.victim.exists()


def test_a_directory_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, lambda _: None)
    scene.victim.rename(tmp_path / "moved-aaaaaaaa")
    listed = {job.name: job for job in scene.jobs.find().jobs}
    assert f"is of the job {VICTIM}" in (listed["moved-aaaaaaaa"].message or "")
    assert scene.dispatch(monkeypatch) == [WAITING]


def test_what_is_mended_goes_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, lambda _: None)
    path = scene.victim / layout.REQUEST
    sound = path.read_bytes()
    path.write_text("{")
    feed = ChangeFeed(scene.exchange, scene.context.lister, scene.context.reader)
    assert {job.name: job.reason for _, job in feed.poll()}[VICTIM] == "Damaged"
    documents.write_bytes(path, sound)
    assert {job.name: job.reason for _, job in feed.poll()}[VICTIM] is None


def test_its_slot_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that cannot be read kept four CPUs of four."""
    scene = Scene(tmp_path, lambda _: None)
    request = scene.victim / layout.REQUEST
    document = json.loads(request.read_bytes())
    request.write_text(json.dumps({**document, "demand": {"cpu": "4"}}))
    exchanges.end(scene.victim)
    (scene.victim / "attempt-1" / layout.OUTCOME).write_text("{")
    assert scene.dispatch(monkeypatch) == [WAITING]


def test_fields_of_a_newer_version_are_ignored_at_every_depth(tmp_path: Path) -> None:
    scene = Scene(tmp_path, exchanges.end)
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

        free = ("parameters", "env", "demand", "packages", "usage", "environment")
        kept = {name: document[name] for name in free if name in document}
        documents.write_bytes(path, json.dumps(grow(document) | kept).encode())
    assert scene.check() == before
