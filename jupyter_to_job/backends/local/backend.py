"""The local backend as the service sees it: a line in front of this machine's slots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

from job_runner.protocol import liveness

from ...domain.errors import Unavailable, UnknownChoice
from ...domain.state import Placement
from ...exchange import FileExchange, Request
from .capacity import admit, capacity
from .daemon import ensure_dispatcher
from .order import in_line

STARTING = 1.0
"""Seconds that a dispatcher has to take its lock, before another one is started."""


class LocalBackend:
    """Implements `backends.port.Backend`; `capacity_setting` as in JUPYTER_TO_JOB_CAPACITY."""

    name = "local"

    def __init__(self, exchange: FileExchange, capacity_setting: str = "") -> None:
        self._exchange = exchange
        self._setting = capacity_setting
        self._total = capacity(capacity_setting)
        self._started = -STARTING

    def admit(self, demand: Mapping[str, Decimal], kernel: str | None) -> None:
        """See the port. The kernel is looked up where the runner will look, too."""
        admit(demand, self._total)
        if kernel is not None:
            manager = KernelSpecManager()
            try:
                manager.get_kernel_spec(kernel)
            except NoSuchKernel as error:
                raise UnknownChoice(
                    f"There is no kernel {kernel!r} here.",
                    f"Installed: {', '.join(sorted(manager.find_kernel_specs())) or 'none'}.",
                ) from error

    def changed(self, job: str) -> None:  # noqa: ARG002 - the dispatcher scans the exchange
        """See the port."""
        if time.monotonic() - self._started < STARTING:
            return
        try:
            if ensure_dispatcher(self._exchange.root, self._setting):
                self._started = time.monotonic()
        except OSError as error:
            raise Unavailable(
                f"The dispatcher could not be started: {error.strerror}.",
                "The job is recorded; `jupyter-to-job wait` tries again.",
            ) from error

    def alive(self, job: str, attempt: Path) -> bool:  # noqa: ARG002 - its lock is enough
        """See the port."""
        return liveness.is_alive(attempt)

    def placements(self, waiting: Sequence[Request]) -> Mapping[str, Placement]:
        """See the port."""
        line = enumerate(in_line(waiting), start=1)
        return {request.name: Placement(position=place) for place, request in line}
