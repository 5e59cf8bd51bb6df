"""What may take long or much memory, in a process of its own: no other job waits for it.

`python -m jupyter_to_job.dispatcher.errands EXCHANGE settle JOB` delivers an ended job, or removes
it if that is the wish; `... EXCHANGE retain` clears away what is older than it is to be kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

from job_runner.protocol import layout

from ..domain.errors import JobsError, NotFound
from ..exchange import FileExchange


def main(arguments: list[str]) -> int:
    """Run one errand; what went wrong is the last line on stderr."""
    root, what, *rest = arguments
    exchange = FileExchange(Path(root))
    try:
        if what == "settle":
            settle(exchange, *rest)
        else:
            retain(exchange)
    except NotFound:
        return 0  # removed meanwhile: nothing is left to do
    except (JobsError, OSError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def settle(exchange: FileExchange, job: str) -> None:
    """Deliver an ended job, or remove it."""
    from ..service.delivery import deliver

    if exchange.document(job, layout.DELETE) is not None:
        exchange.remove(job)
    else:
        deliver(exchange, job)


def retain(exchange: FileExchange) -> None:
    """Clear away leftovers of killed processes, and what was kept long enough."""
    # Read here, where nobody waits: the dispatcher itself needs no settings.
    from ..exchange.retention import Policy, enforce
    from ..wiring import Settings

    exchange.sweep()
    settings = Settings.load()
    for name in enforce(exchange, Policy.parse(settings.retention, settings.exchange_cap)):
        sys.stderr.write(f"{name}: cleared\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
