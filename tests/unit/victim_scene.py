"""An exchange in which one job is damaged, without a process: who reads all jobs must go on."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout
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

    def deliver_or_remove(self, request: Any) -> bool:
        self.begun.append(request.name)
        return True


class VictimScene:
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


def _end_and_deliver(directory: Path) -> None:
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
    "delivery": (_end_and_deliver, layout.DELIVERY),
}
"""What is damaged: how far the victim has come, and which of its documents."""
