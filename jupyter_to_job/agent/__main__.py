"""`python -m jupyter_to_job.agent JOB --gateway URL --folder DIR`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from pathlib import Path

from ..backends.kubernetes.manifest import TOKEN_FOLDER
from ..exchange.gateway import Gateway, GatewayExchange
from .agent import Agent, Stopped


def main() -> None:
    """Fetch, then send until told to stop; then send the rest."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.agent", description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--token-file", type=Path, default=Path(TOKEN_FOLDER, "token"))
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    stop = threading.Event()
    # From a thread: the signal may come while the main one holds the event's own lock.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop.set).start())
    exchange = GatewayExchange(Gateway(options.gateway, options.token_file))
    agent = Agent(exchange, options.job, options.folder, os.environ.get("POD_UID", ""), stop)
    try:
        agent.fetch()
    except Stopped:
        return  # nothing had begun: what holds the pod up longer only holds its GPU
    agent.send_until_stopped()


if __name__ == "__main__":
    main()
