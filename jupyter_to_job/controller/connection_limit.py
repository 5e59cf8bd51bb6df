"""How many connections the controller's servers keep open: never all that it has descriptors for.

Where a connection finds no descriptor, tornado tries to accept it on each turn of the event loop,
and logs a traceback each time. The files of the exchange need descriptors, too.
"""

from __future__ import annotations

import logging
import resource
import time

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

MAX_OPEN_FILES = 32768
"""Descriptors that are used, at most: each connection takes some of the container's memory."""
SHARES = 4
"""The gateway's connections, a file for each of them, those for operations, and all the rest."""
WARNING_INTERVAL = 60.0
"""Seconds between two lines in the log about connections that are closed."""
_log = logging.getLogger(__name__)


def raise_open_file_limit() -> None:
    """Raise the soft limit of open files, which is 1024 in many containers, for this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _usable(soft) < _usable(hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_usable(hard), hard))


def max_connections() -> int:
    """Return how many connections one server may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _usable(soft) // SHARES


def _usable(limit: int) -> int:
    return MAX_OPEN_FILES if limit == resource.RLIM_INFINITY else min(limit, MAX_OPEN_FILES)


class LimitedServer(HTTPServer):
    """An HTTP server that closes new connections while it has `max_connections`."""

    _last_warning = float("-inf")

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        """Serve a new connection, or close it."""
        if len(self._connections) < max_connections():
            super().handle_stream(stream, address)
            return
        stream.close()
        if time.monotonic() - self._last_warning > WARNING_INTERVAL:
            self._last_warning = time.monotonic()
            _log.warning(
                "%d connections are open, so new ones are closed. The container's hard limit of"
                " open files, up to %d, decides how many there may be.",
                *(len(self._connections), MAX_OPEN_FILES),
            )
