"""What a check finds, and running checks that may hang: a dead network mount, a GPU's driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ...domain.errors import JobsError

BOUND = 30.0
"""Seconds that one check may take."""


class Level(str, Enum):
    """How bad it is: with a `problem` jobs do not work, or not safely."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class CheckResult(NamedTuple):
    """One line of `doctor`: the part that was looked at, how it is, and how to mend it."""

    area: str
    level: Level
    message: str
    mend: str = ""


Check = Callable[[], Iterable[CheckResult]]


def ok(area: str, message: str) -> CheckResult:
    """Return a finding that all is well."""
    return CheckResult(area, Level.OK, message)


def warning(area: str, message: str, mend: str) -> CheckResult:
    """Return a finding that something works less well than it could."""
    return CheckResult(area, Level.WARNING, message, mend)


def problem(area: str, message: str, mend: str) -> CheckResult:
    """Return a finding that something does not work."""
    return CheckResult(area, Level.PROBLEM, message, mend)


def examined(area: str, check: Check, bound: float = BOUND) -> Iterator[CheckResult]:
    """Run a check, at most `bound` seconds, and yield what it finds; its own failure is a finding.

    It runs in a thread that does not keep the process: what hangs in the kernel cannot be ended.
    """
    found: list[CheckResult] = []

    def run() -> None:
        try:
            found.extend(check())
        except JobsError as error:
            found.append(problem(area, error.message, error.hint))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            said = f"{where}{error.strerror or error}."
            found.append(problem(area, said, "See that the path is there and yours."))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(bound)
    yield from tuple(found)
    if thread.is_alive():
        yield problem(
            area, f"No answer within {bound:g} s.", "Is a network file system, or a driver, away?"
        )
