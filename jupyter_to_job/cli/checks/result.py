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
    """One line of `doctor`: the area that was checked, what was found, and how to fix it."""

    area: str
    level: Level
    message: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the result as `doctor --json` prints it; `fix` is called `mend` there."""
        return {
            "area": self.area,
            "level": self.level.value,
            "message": self.message,
            "mend": self.fix,
        }


Check = Callable[[], Iterable[CheckResult]]


def ok(area: str, message: str) -> CheckResult:
    """Return a result without a fault."""
    return CheckResult(area, Level.OK, message)


def warning(area: str, message: str, fix: str) -> CheckResult:
    """Return the result that something works less well than it could."""
    return CheckResult(area, Level.WARNING, message, fix)


def problem(area: str, message: str, fix: str) -> CheckResult:
    """Return the result that something does not work."""
    return CheckResult(area, Level.PROBLEM, message, fix)


def run_check(area: str, check: Check, timeout: float = CHECK_TIMEOUT) -> Iterator[CheckResult]:
    """Run a check for at most `timeout` seconds, and yield its results. Its errors are problems.

    It runs in a daemon thread: a call that hangs in the operating system cannot be ended.
    """
    results: list[CheckResult] = []

    def collect() -> None:
        try:
            results.extend(check())
        except JobsError as error:
            results.append(problem(area, error.message, error.hint))
        except OSError as error:
            path = f"{error.filename}: " if error.filename else ""
            message = f"{path}{error.strerror or error}."
            results.append(problem(area, message, "See that the path is there and yours."))

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(timeout)
    yield from tuple(results)
    if thread.is_alive():
        yield problem(
            area, f"No answer within {timeout:g} s.", "Is a network file system, or a driver, away?"
        )
