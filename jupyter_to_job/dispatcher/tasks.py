"""Tasks that may take long or much memory, each in a process of its own: no other job waits.

A fork of the dispatcher runs `deliver_or_remove`. `python -m jupyter_to_job.dispatcher.tasks
EXCHANGE` clears what is older than the retention.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from job_runner.protocol import layout

from ..domain.errors import JobsError, NotFound
from ..exchange import FileExchange
from ..service.delivery import deliver


def deliver_or_remove(exchange: FileExchange, job: str) -> int:
    """Deliver an ended job, or remove it if that was requested; return an exit status."""
    return _run(partial(_deliver_or_remove, exchange, job))


def _deliver_or_remove(exchange: FileExchange, job: str) -> None:
    if exchange.document(job, layout.DELETE) is not None:
        exchange.remove(job)
    else:
        deliver(exchange, job)


def retain(exchange: FileExchange) -> int:
    """Clear what killed processes left behind, and what was kept long enough."""
    return _run(partial(_retain, exchange))


def _retain(exchange: FileExchange) -> None:
    # Imported in this process only: the dispatcher itself needs no settings.
    from ..exchange.retention import Policy, enforce
    from ..wiring import Settings

    exchange.sweep()
    settings = Settings.load()
    for name in enforce(exchange, Policy.parse(settings.retention, settings.exchange_cap)):
        sys.stderr.write(f"{name}: cleared\n")


def _run(task: Callable[[], None]) -> int:
    """Run a task; return an exit status. An error is the last line on stderr."""
    try:
        task()
    except NotFound:
        return 0  # removed meanwhile
    except (JobsError, OSError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(retain(FileExchange(Path(sys.argv[1]))))
