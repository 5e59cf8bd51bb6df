"""The core of tests/conformance on the real cluster, eight jobs at a time.

Each test of the core runs once, in a thread, in a place of its own. What is skipped there is
skipped by what the backend says of itself.
"""

from __future__ import annotations

import inspect
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.place import ClusterPlace
from tests.cluster.product import DevPod
from tests.conformance import (
    test_again,
    test_delivery,
    test_endings,
    test_lifecycle,
    test_submit,
)

MODULES = (test_submit, test_lifecycle, test_again, test_delivery, test_endings)
AT_A_TIME = 8
BOUND = 240.0
"""Seconds for all of them."""


@dataclass(frozen=True)
class Case:
    """A test of the core, with the arguments of one of its parametrizations."""

    function: Callable[..., None]
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        values = ",".join(map(str, self.arguments.values()))
        return f"{self.function.__name__}[{values}]" if values else self.function.__name__


def cases() -> list[Case]:
    """Return the core of the suite."""
    functions = [f for module in MODULES for f in vars(module).values() if is_core(f)]
    return [Case(f, arguments) for f in functions for arguments in parametrizations(f)]


def is_core(thing: object) -> bool:
    return "core" in [mark.name for mark in getattr(thing, "pytestmark", [])]


def parametrizations(function: Callable[..., None]) -> list[dict[str, Any]]:
    """Return the arguments of each run of a test that is parametrized by one name, or by none."""
    marks = [m for m in getattr(function, "pytestmark", []) if m.name == "parametrize"]
    if not marks:
        return [{}]
    ((name, values),) = (mark.args for mark in marks)
    return [{name: value} for value in values]


class Runs:
    """The tests of the core as they run, `AT_A_TIME` of them."""

    def __init__(self, folder: Path, beside: DevPod, images: Images) -> None:
        self._folder = folder
        self._beside = beside
        self._images = images
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_A_TIME)
        self._places = ExitStack()
        self._end = time.monotonic() + BOUND
        self._results = {str(case): self._pool.submit(self._run, case) for case in cases()}

    def result(self, case: Case) -> Future[None]:
        return self._results[str(case)]

    @property
    def remaining(self) -> float:
        """Seconds until all tests must have ended."""
        return max(0.0, self._end - time.monotonic())

    def close(self) -> None:
        """Wait for what still runs, and delete the jobs that are left."""
        self._pool.shutdown(cancel_futures=True)
        self._places.close()

    def _run(self, case: Case) -> None:
        """Run a test with what the fixtures of its suite would give it."""
        arguments = dict(case.arguments)
        for name in inspect.signature(case.function).parameters:
            if name == "place":
                arguments[name] = self._make_place()
            elif name == "make_place":
                arguments[name] = self._make_place
            elif name == "shared":
                with self._lock:  # whoever is first makes it
                    arguments[name] = self._shared
        case.function(**arguments)

    def _make_place(self, hold: Any = None) -> ClusterPlace:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        place = ClusterPlace(folder, hold, self._beside, self._images)
        self._places.enter_context(closing(place))
        return place

    @cached_property
    def _shared(self) -> ClusterPlace:
        """A place with one delivered job, for tests that only look."""
        place = self._make_place()
        place.decided(place.submit(inputs=("dir",)).name)
        return place


@pytest.fixture(scope="module")
def runs(
    cluster: object,
    images: Images,
    dev_pod: DevPod,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """All tests of the core, started together."""
    if not isinstance(cluster, Box):
        pytest.skip("the exchange of another cluster is not on this machine")
    assert dev_pod.cluster is cluster  # the controller is there
    with closing(Runs(tmp_path_factory.mktemp("places"), dev_pod, images)) as runs:
        yield runs


@pytest.mark.parametrize("case", cases(), ids=str)
def test_on_a_cluster(case: Case, runs: Runs) -> None:
    runs.result(case).result(timeout=runs.remaining)
