"""The port between the service and whatever starts runners.

A backend never stores anything about a job that matters: the job's directory does. It is told that
something was recorded, and it says what it alone knows of jobs that have not started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from ..domain.state import Placement
from ..exchange import Request


@dataclass(frozen=True)
class Resource:
    """How much there is of one resource, and how much no job holds now (None: unknown)."""

    total: Decimal
    free: Decimal | None


class Backend(Protocol):
    """Starts runners for job directories."""

    name: str
    has_queue: bool
    """Whether jobs wait in a queue of its own: then they have positions and priorities."""

    def admit(self, demand: Mapping[str, Decimal]) -> None:
        """Raise NeverFits for what could never run here; else return."""
        ...

    def notify(self, job: str) -> None:
        """Take notice of a new job, or of a new wish (cancel, delete) in its directory.

        Safe to repeat. Raises Unavailable when nothing can be started now; the job stays recorded.
        """
        ...

    def alive(self, job: str, attempt: Path) -> bool:
        """Tell whether an attempt without an outcome still runs; `attempt` is its directory."""
        ...

    def queue_status(self, waiting: Sequence[Request]) -> Mapping[str, Placement]:
        """Return what is known of jobs without an attempt, by name; a job left out is waiting."""
        ...

    def resources(self) -> Mapping[str, Resource] | None:
        """Return what this backend has, by resource name; None where it cannot know."""
        ...
