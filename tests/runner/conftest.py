"""Jobs whose processes do not outlive their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .jobs import Job, make_job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    made: list[Job] = []

    def make(snapshot: str, **request: object) -> Job:
        directory = tmp_path / f"train-{len(made)}"
        made.append(make_job(directory, snapshot, **request))
        return made[-1]

    yield make
    for each in made:
        for process in each.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
