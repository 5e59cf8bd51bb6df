"""`python -m jupyter_to_job.agent JOB --gateway URL --token-file FILE --folder DIR`.

The SIGTERM handler stands before all other imports. A container's first process ignores a signal
that it does not handle, and there is only one: the kubelet sends it as soon as the run's container
has ended, which one that cannot start does at once. The pod would then wait out its grace.
"""

from __future__ import annotations

import signal
import threading

_stop = threading.Event()
# In a thread: the signal may arrive while the main thread holds the event's internal lock.
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=_stop.set).start())

import argparse  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from .. import logs  # noqa: E402
from ..domain.errors import JobsError  # noqa: E402
from .agent import Agent, Stopped  # noqa: E402
from .gateway_connection import GatewayConnection  # noqa: E402
from .shared_folder import SharedFolder  # noqa: E402


def main() -> int:
    """Fetch the job's files, then send what its runner writes until the run or the pod ends."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.agent", description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    logs.configure(os.environ.get(logs.FORMAT_VARIABLE, logs.TEXT))
    logs.add_context(job=options.job, request_id=os.environ.get(logs.REQUEST_VARIABLE))
    pod = os.environ.get("POD_UID", "")
    try:
        ca = os.environ.get("JUPYTER_TO_JOB_GATEWAY_CA_DATA", "")
        gateway = GatewayConnection(options.gateway, options.token_file, options.job, ca)
        agent = Agent(gateway, options.job, SharedFolder(options.folder), pod, _stop)
        agent.fetch()
        agent.send_until_ended()
    except Stopped:
        pass  # nothing has run: it ends at once, because the pod holds a GPU
    except (JobsError, OSError) as error:
        logging.getLogger(__name__).error("%s: %s", options.job, error)
        return 1  # the kubelet starts it again, while the run goes on
    return 0


if __name__ == "__main__":
    sys.exit(main())
