"""`python -m jupyter_to_job.agent.courier JOB --gateway URL --token-file FILE --root MOUNT`.

What a courier pod runs: it delivers the result of one job into the volume that is mounted at
`MOUNT`, and ends. It signs nothing, for the user's key is not here. Told to end it leaves no draft;
killed at any moment it leaves nothing but one, which the next courier removes.

If it fails, its last words are the pod's termination message, which the controller reads.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import posixpath
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .. import logs
from ..domain.errors import JobsError, Refused
from ..service.remote_delivery import deliver_remotely
from ..workspace import Workspace
from .gateway_connection import GatewayConnection

PATIENCE = 60.0
"""Seconds for which a gateway may be away, or not know this pod yet."""
MIN_RETRY_DELAY, MAX_RETRY_DELAY = 0.1, 5.0
_log = logging.getLogger(__name__)


def main() -> int:
    """Deliver, or say why that is not possible; what is said last is the pod's last word."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.agent.courier", description=__doc__)
    parser.add_argument("job")
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--root", required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    logs.configure(os.environ.get(logs.FORMAT_VARIABLE, logs.TEXT))
    logs.add_context(job=options.job, request_id=os.environ.get(logs.REQUEST_VARIABLE))
    try:
        ca = os.environ.get("JUPYTER_TO_JOB_GATEWAY_CA_DATA", "")
        gateway = GatewayConnection(options.gateway, options.token_file, options.job, ca)
        with_patience(lambda: deliver(gateway, options.job, options.root))
    except (JobsError, OSError) as error:
        _log.error("%s: %s", options.job, error)
        say_last_words(str(error))
        return 1
    _log.info("%s: delivered, or held with its reason", options.job)
    return 0


def _end(*_: object) -> NoReturn:
    """End on SIGTERM, which a container's first process ignores; drafts are removed on the way."""
    raise SystemExit(128 + signal.SIGTERM)


def say_last_words(text: str) -> None:
    """Write the pod's termination message, where the pod has a file for it."""
    path = os.environ.get("JUPYTER_TO_JOB_TERMINATION_LOG")
    with contextlib.suppress(OSError):  # the log has them, too
        if path:
            Path(path).write_text(f"{text}\n", encoding="utf-8")


def deliver(gateway: GatewayConnection, job: str, root: str) -> None:
    """Publish a job in the volume at `root`, the same path as in the dev pod.

    What came of it is reported to the gateway. Raises errors of `domain.errors`.
    """

    def to_workspace(path: str) -> str:
        relative = posixpath.relpath(f"/{path}", root)
        return f"{relative}/" if path.endswith("/") else relative

    def from_workspace(path: str) -> str:
        return posixpath.join(root, path).lstrip("/")

    deliver_remotely(
        gateway, job, Workspace(Path(root)), to_workspace, from_workspace, sign=lambda *_: ""
    )


def with_patience(action: Callable[[], None], patience: float = PATIENCE) -> None:
    """Repeat `action` while the gateway is away, or refuses because it does not know this pod yet.

    Raises the last error `patience` seconds after the first one, however long the action went well.
    """
    failing_since, delay = None, MIN_RETRY_DELAY
    while True:
        try:
            action()
            return
        except JobsError as error:
            now = time.monotonic()
            failing_since = now if failing_since is None else failing_since
            is_passing = error.retryable or isinstance(error, Refused)
            if not is_passing or now - failing_since > patience:
                raise
        time.sleep(delay)
        delay = min(2 * delay, MAX_RETRY_DELAY)


if __name__ == "__main__":
    sys.exit(main())
