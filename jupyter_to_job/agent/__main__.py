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
    """Fetch the job's files, then send what its runner writes until the pod ends."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.agent", description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--token-file", type=Path, default=Path(TOKEN_FOLDER, "token"))
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    stop = threading.Event()
    # In a thread: the signal may arrive while the main thread holds the event's internal lock.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop.set).start())
    exchange = GatewayExchange(Gateway(options.gateway, options.token_file))
    agent = Agent(exchange, options.job, options.folder, os.environ.get("POD_UID", ""), stop)
    try:
        agent.fetch()
    except Stopped:
        return  # the runner was not started: end at once, because the pod holds a GPU
    agent.send_until_stopped()


if __name__ == "__main__":
    main()
