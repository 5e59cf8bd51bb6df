"""Tests with the mark `side_by_side` run beside each other, in threads of the one pytest.

They come before all other tests. The first of them starts them all, `AT_A_TIME` at once and in the
order of the numbers in their marks (0 without one); each then waits for its own end, and ends as it
did. Their fixtures are those of the whole session. What they share else is made `once`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest

MARK = "side_by_side"
AT_A_TIME = 6
IN_LINE = 900
"""Seconds that a test may take with its waiting in line: each wait of its own is bounded, too."""
LONGEST = 12
"""Tests that a summary names."""
Made = TypeVar("Made")


class Lanes:
    """The tests with the mark as they run; a fixture of each of them."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Run nothing yet. The request is one of the whole session."""
        self._request = request
        self._pool = ThreadPoolExecutor(AT_A_TIME)
        self._runs: dict[str, Future[None]] = {}
        self._seconds: dict[str, float] = {}
        self._begun = self._ended = time.monotonic()

    def wait(self, item: pytest.Function) -> None:
        """Wait for the end of a test, and raise what it raised; start all if it is the first."""
        if item.nodeid not in self._runs:
            self._start([each for each in item.session.items if is_marked(each)])
        self._runs[item.nodeid].result()

    def seconds(self, item: pytest.Item) -> float | None:
        """Return how long a test ran, without its waiting in line."""
        return self._seconds.get(item.nodeid)

    def summary(self) -> str:
        """Return how long all took, and which took longest."""
        return f"side by side in {self._ended - self._begun:.0f} s: {told(self._seconds)}"

    def close(self) -> None:
        """Start no more tests, and wait for those that run."""
        self._pool.shutdown(cancel_futures=True)

    def _start(self, items: list[pytest.Item]) -> None:
        calls = []
        for item in sorted(items, key=number_of):
            assert isinstance(item, pytest.Function)
            with contextlib.suppress(pytest.skip.Exception):  # pytest skips it for the same reason
                calls.append((item, self._arguments(item)))
        self._begun = time.monotonic()
        for item, arguments in calls:  # all fixtures are there
            self._runs[item.nodeid] = self._pool.submit(self._run, item, arguments)

    def _arguments(self, item: pytest.Function) -> dict[str, object]:
        """Return what pytest would give to a test."""
        given = item.callspec.params if hasattr(item, "callspec") else {}
        return {
            name: given[name] if name in given else self._request.getfixturevalue(name)
            for name in inspect.signature(item.function).parameters
        }

    def _run(self, item: pytest.Function, arguments: dict[str, object]) -> None:
        started = time.monotonic()
        try:
            item.function(**arguments)
        finally:
            self._ended = time.monotonic()
            self._seconds[item.nodeid] = self._ended - started


def told(seconds: Mapping[str, float]) -> str:
    """Return for people how long tests took."""
    longest = sorted(seconds, key=seconds.__getitem__, reverse=True)[:LONGEST]
    names = "".join(f"\n  {seconds[name]:5.0f} s {name}" for name in longest)
    return f"{len(seconds)} tests of {sum(seconds.values()):.0f} s, the longest{names}"


def is_marked(item: pytest.Item) -> bool:
    """Tell whether a test has the mark."""
    return item.get_closest_marker(MARK) is not None


def arrange(items: list[pytest.Item]) -> None:
    """Put the tests that run beside all others first, long ones and late ones at their end."""
    items.sort(key=_place_of)
    for item in items:
        if is_marked(item):
            assert isinstance(item, pytest.Function)
            item.fixturenames.append("lanes")
            item.add_marker(pytest.mark.timeout(IN_LINE))


def _place_of(item: pytest.Item) -> tuple[bool, int]:
    if not is_marked(item):
        return True, 0
    return False, abs(number_of(item))


def number_of(item: pytest.Item) -> int:
    """Return the number in a test's mark: those with the lowest begin first."""
    mark = item.get_closest_marker(MARK)
    return mark.args[0] if mark and mark.args else 0


def once(make: Callable[..., Made]) -> Callable[..., Made]:
    """Decorate a function so that the first thread makes what it returns, and others wait for it.

    Its arguments count as the same always.
    """
    lock = threading.Lock()
    made: list[Made] = []

    @functools.wraps(make)
    def get(*arguments: object) -> Made:
        with lock:
            if not made:
                made.append(make(*arguments))
            return made[0]

    return get
