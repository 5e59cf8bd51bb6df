"""The port for those who run the controller: probes and metrics, apart from the gateway's.

The gateway's Service does not lead here, so dev pods do not ask for metrics by it. The port opens
before everything else: a controller that waits for another one to end is alive, and not ready.
"""

from __future__ import annotations

from prometheus_client.exposition import choose_encoder
from tornado import web

from .connection_limit import LimitedServer
from .metrics import Metrics
from .readiness import OK, Readiness

MAX_BODY = 1024
"""Bytes of the body of a request: none has one."""
TIMEOUT = 10.0
"""Seconds for a request, and between two."""


def operations_server(metrics: Metrics, readiness: Readiness) -> LimitedServer:
    """Return the server of `/healthz`, `/readyz` and `/metrics`."""
    routes = [
        (r"/healthz", AliveHandler),
        (r"/readyz", ReadyHandler, {"readiness": readiness}),
        (r"/metrics", MetricsHandler, {"metrics": metrics}),
    ]
    application = web.Application(routes, log_function=lambda _: None)  # type: ignore[arg-type]
    timeouts = {"idle_connection_timeout": 6 * TIMEOUT, "body_timeout": TIMEOUT}
    return LimitedServer(application, max_body_size=MAX_BODY, **timeouts)


class AliveHandler(web.RequestHandler):
    """Says that the event loop goes round."""

    def get(self) -> None:
        """Answer."""
        self.finish({"status": OK})


class ReadyHandler(web.RequestHandler):
    """Says whether requests can be served, and names each check."""

    def initialize(self, readiness: Readiness) -> None:
        """Store the checks."""
        self._readiness = readiness

    async def get(self) -> None:
        """Answer with 200 or 503."""
        status, body = await self._readiness.answer()
        self.set_status(status)
        self.finish(body)


class MetricsHandler(web.RequestHandler):
    """The metrics in Prometheus' formats."""

    def initialize(self, metrics: Metrics) -> None:
        """Store the metrics."""
        self._metrics = metrics

    def get(self) -> None:
        """Answer."""
        encode, content_type = choose_encoder(self.request.headers.get("Accept", ""))
        self.set_header("Content-Type", content_type)
        self.finish(encode(self._metrics.registry))
