"""`python -m jupyter_to_job.dispatcher EXCHANGE`: started by whoever submits, leaves when idle."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from ..backends.local.capacity import capacity
from ..backends.local.daemon import try_lock
from ..exchange import FileExchange
from .loop import Dispatcher


def main() -> int:
    """Serve the exchange until there is nothing to do; 0 also if another dispatcher serves it."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.dispatcher", description=__doc__)
    parser.add_argument("exchange", type=Path)
    parser.add_argument("--capacity", default="", help="slots, e.g. cpu=2,memory=4Gi")
    parser.add_argument(
        "--idle", type=float, default=10.0, help="seconds without work before leaving"
    )
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    exchange = FileExchange(options.exchange)
    exchange.sweep()
    dispatcher = Dispatcher(exchange, capacity(options.capacity))
    while True:
        lock = try_lock(options.exchange)
        if lock is None:
            return 0
        dispatcher.serve(options.idle)
        os.close(lock)
        # Whoever submitted while this one was leaving found the lock taken and started none.
        if not dispatcher.has_work():
            return 0


if __name__ == "__main__":
    sys.exit(main())
