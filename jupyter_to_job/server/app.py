"""The ExtensionApp: builds the service for the server's root, adds routes, starts the feed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from jupyter_server.extension.application import ExtensionApp
from tornado.ioloop import IOLoop

from ..api.events import JOB_SCHEMA, JOB_SCHEMA_ID
from ..wiring import Settings, connect
from .feed import Feed
from .handlers import JobsHandler

WORKERS = 8
"""Threads for the synchronous service: no request waits on the event loop, and load is bounded."""


class JobsExtension(ExtensionApp):
    """`jupyter_to_job` in Jupyter Server's configuration."""

    name = "jupyter_to_job"
    app_name = "Jupyter to Job"
    load_other_extensions = True

    def initialize_settings(self) -> None:
        """Connect to the jobs of this workspace."""
        server = self.serverapp
        assert server is not None and server.event_logger is not None
        settings = Settings.load()
        root = Path(settings.workspace or server.root_dir)
        self._jobs = connect(settings, root, only_inside=True)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="jupyter-to-job")
        self.settings["jupyter_to_job"] = {"jobs": self._jobs, "pool": self._pool}
        server.event_logger.register_event_schema(JOB_SCHEMA)
        emit = partial(server.event_logger.emit, schema_id=JOB_SCHEMA_ID)
        # The logger's listeners live on the event loop, and the feed in a thread.
        tell = partial(IOLoop.current().add_callback, emit)
        self._feed = Feed(self._jobs, tell, self.log)

    def initialize_handlers(self) -> None:
        """Add the routes; the feed begins with them."""
        self.handlers.append((r"/jupyter-to-job/api/(.*)", JobsHandler))
        self._feed.start()

    async def stop_extension(self) -> None:
        """End the feed. Jobs go on: they are not this server's."""
        self._feed.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
