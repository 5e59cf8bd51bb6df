"""The worked example of docs/backends.md is a backend: it runs, cancels and delivers jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout
from jupyter_to_job.backends.port import Backend
from jupyter_to_job.domain.job import DeliveryState, Job, State

from .. import notebooks
from ..conformance.place import MemoryPlace
from ..processes import end_all
from .pages import page

PAGE = page("docs/backends.md")


def example() -> Any:
    """Return the class that the page defines."""
    (source,) = (
        b for b in PAGE.blocks if b.language == "python" and "class DirectBackend" in b.text
    )
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(source.text, "docs/backends.md", "exec"), names)
    return names["DirectBackend"]


class DirectPlace(MemoryPlace):
    def backend(self) -> Backend:
        backend: Backend = example()(self.exchange, self.settle)
        return backend

    def held_job(self) -> Job:
        notebooks.write(self.workspace / "long.ipynb", "print('# kept', flush=True)", LONG)
        return self.in_state(self.submit("long.ipynb").name, State.RUNNING)


LONG = "import time; time.sleep(600)"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield DirectPlace(tmp_path, None)
    end_all(tmp_path)


def test_the_example_runs_jobs(place: DirectPlace) -> None:
    running = place.held_job()
    job = place.decided(place.submit().name)
    assert (job.state, job.delivery.state) == (State.SUCCEEDED, DeliveryState.DELIVERED)
    assert "# kept" in notebooks.printed(place.result(job))
    place.service.cancel(running.name)
    ended = place.decided(running.name)
    assert (ended.state, ended.delivery.state) == (State.CANCELLED, DeliveryState.DELIVERED)
    assert (place.exchange.directory(running.name) / "attempt-1" / layout.OUTCOME).exists()


def test_every_member_of_the_port() -> None:
    members = {name for name in {*vars(Backend), *Backend.__annotations__} if name[0] != "_"}
    assert set(PAGE.first_names("## What the backend is asked")) == members
    assert [name for name in members if not hasattr(example(), name)] == []
