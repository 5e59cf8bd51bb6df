"""What may take long or much memory, in a process of its own: no other job waits for it.

`settle` is run by a copy of the dispatcher (`forks`). `python -m jupyter_to_job.dispatcher.tasks
EXCHANGE` clears away what is older than it is to be kept.
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
    """Deliver an ended job, or remove it if that is the wish; return an exit status."""
    return _guarded(partial(_settle, exchange, job))


def _settle(exchange: FileExchange, job: str) -> None:
    if exchange.document(job, layout.DELETE) is not None:
        exchange.remove(job)
    else:
        deliver(exchange, job)


def retain(exchange: FileExchange) -> int:
    """Clear away leftovers of killed processes, and what was kept long enough."""
    return _guarded(partial(_retain, exchange))


def _retain(exchange: FileExchange) -> None:
    # Read here, where nobody waits: the dispatcher itself needs no settings.
    from ..exchange.retention import Policy, enforce
    from ..wiring import Settings

    exchange.sweep()
    settings = Settings.load()
    for name in enforce(exchange, Policy.parse(settings.retention, settings.exchange_cap)):
        sys.stderr.write(f"{name}: cleared\n")


def _guarded(errand: Callable[[], None]) -> int:
    """Run an errand; what went wrong is the last line on stderr."""
    try:
        errand()
    except NotFound:
        return 0  # removed meanwhile: nothing is left to do
    except (JobsError, OSError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(retain(FileExchange(Path(sys.argv[1]))))
