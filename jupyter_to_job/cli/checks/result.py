"""The results of checks, and running checks that may hang: on a dead network mount, a driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from typing import NamedTuple

from ...domain.errors import JobsError

CHECK_TIMEOUT = 30.0


class Level(str, Enum):
    """The severity of a result. With a `problem`, jobs do not work, or not safely."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class CheckResult(NamedTuple):
    """One line of `doctor`: what was found, and how to fix it.

    `repair` does what `fix` says; None: the user has to.
    """

    level: Level
    message: str
    fix: str = ""
    repair: Callable[[], None] | None = None


Check = Callable[[], Iterable[CheckResult]]
ok = partial(CheckResult, Level.OK)
"""Returns a result without a fault."""
warning = partial(CheckResult, Level.WARNING)
"""Returns the result that something works less well than it could."""
problem = partial(CheckResult, Level.PROBLEM)
"""Returns the result that something does not work."""


def run_check(check: Check, timeout: float = CHECK_TIMEOUT) -> Iterator[CheckResult]:
    """Run a check for at most `timeout` seconds, and yield its results. Its errors are problems.

    It runs in a daemon thread: a call that hangs in the operating system cannot be ended.
    """
    results: list[CheckResult] = []

    def collect() -> None:
        try:
            results.extend(check())
        except JobsError as error:
            results.append(problem(error.message, error.hint))
        except OSError as error:
            path = f"{error.filename}: " if error.filename else ""
            message = f"{path}{error.strerror or error}."
            results.append(problem(message, "See that the path is there and yours."))

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(timeout)
    yield from tuple(results)
    if thread.is_alive():
        hint = "Is a network file system, or a driver, away?"
        yield problem(f"No answer within {timeout:g} s.", hint)
