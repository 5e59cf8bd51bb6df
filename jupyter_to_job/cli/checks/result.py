"""The results of checks, and running checks that may hang: on a dead network mount, a driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ...domain.errors import JobsError

CHECK_TIMEOUT = 30.0


class Level(str, Enum):
    """The severity of a result. With a `problem`, jobs do not work, or not safely."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class CheckResult(NamedTuple):
    """One line of `doctor`: what was found, and how to fix it."""

    level: Level
    message: str
    fix: str = ""


Check = Callable[[], Iterable[CheckResult]]


def ok(message: str) -> CheckResult:
    """Return a result without a fault."""
    return CheckResult(Level.OK, message)


def warning(message: str, fix: str) -> CheckResult:
    """Return the result that something works less well than it could."""
    return CheckResult(Level.WARNING, message, fix)


def problem(message: str, fix: str) -> CheckResult:
    """Return the result that something does not work."""
    return CheckResult(Level.PROBLEM, message, fix)


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
