"""The port between the service and the backends, which start runners.

A backend stores nothing about a job that matters: the job's directory does. The service notifies it
of new records, and asks it about the jobs that have not started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from ..domain.state import Placement
from ..domain.wait import Need
from ..exchange import Request


@dataclass(frozen=True)
class Resource:
    """The total of one resource, and what no job occupies of it (None: unknown)."""

    total: Decimal
    free: Decimal | None


class Units(NamedTuple):
    """How many units of a device are free now, and how many there are. None: nobody knows."""

    free: int | None = None
    total: int | None = None


class Backend(Protocol):
    """Starts runners for job directories."""

    name: str
    has_queue: bool
    """Whether jobs wait in a queue of its own: then they have positions and priorities."""

    def admit(self, demand: Mapping[str, Decimal]) -> None:
        """Raise NeverFits for a job that could never run here."""

    def notify(self, *jobs: str) -> None:
        """Notice new jobs, or new requests (cancel, delete) in jobs' directories.

        Safe to repeat. Raises Unavailable when nothing can be started now; the job stays recorded.
        """

    def alive(self, job: str, attempt: Path) -> bool:
        """Tell whether an attempt without an outcome still runs; `attempt` is its directory."""

    def queue_status(self, waiting: Mapping[str, Request]) -> Mapping[str, Placement]:
        """Return the placements of jobs without an attempt by name; one that is missing waits.

        It is asked all the time: the same object means that nothing changed.
        """

    def resources(self) -> Mapping[str, Resource] | None:
        """Return this backend's resources by name; None if it cannot know them."""


@runtime_checkable
class QueueForecaster(Protocol):
    """What a backend may implement beside: it knows what the jobs of its queue wait for."""

    def needs(self, request: Request) -> tuple[Need, ...]:
        """Return the resources of which less is free now than a waiting job needs."""

    def forecast(
        self,
        queue: Sequence[Request],
        run_time: Callable[[Request], float | None],
        remaining: Callable[[str], float | None],
    ) -> Sequence[float | None]:
        """Return in how many seconds each job starts, of the first of one host's queue in order.

        `run_time` says how many seconds a waiting job will run, and `remaining` how many one of a
        name that has started still does; None: nobody knows. It is None of a job of which nobody
        can say it.
        """
