"""The ExtensionApp: builds the service for the server's root, adds routes, starts the feed."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.fileio import FileManagerMixin
from tornado.ioloop import IOLoop

from ..api.events import DELETED_SCHEMA_ID, JOB_SCHEMA_ID, SCHEMAS, SUBMISSION_SCHEMA_ID
from ..domain.job import Deleted, Job
from ..domain.transfer import Transfers
from ..wiring import Settings, connect, open_workspace
from .feed import Feed
from .handlers import JobsHandler, ServerContext
from .puller import ResultPuller

WORKERS = 8
"""Threads of each pool: no request blocks the event loop, and the load is bounded."""


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
        for unknown in settings.unknown:
            self.log.warning("There is no setting %s.", unknown)
        root, rootless = _root(server, settings)
        # A gateway's kernels are on another machine: then those of this machine are used.
        gateway = getattr(server, "gateway_config", None)
        is_remote = gateway is not None and gateway.gateway_enabled
        manager = (None if is_remote else server.kernel_spec_manager) or KernelSpecManager()
        jobs = connect(settings, root, only_inside=True, kernel_manager=lambda: manager)
        for schema in SCHEMAS:
            server.event_logger.register_event_schema(schema)
        self._emit_event = server.event_logger.emit
        self._loop = IOLoop.current()
        quick, slow = self._pools = (
            ThreadPoolExecutor(WORKERS, "jupyter-to-job-quick"),
            ThreadPoolExecutor(WORKERS, "jupyter-to-job-slow"),
        )
        transfers = Transfers(self._emit_transfer)
        workspace = open_workspace(settings, root)
        self.settings["jupyter_to_job"] = ServerContext(
            jobs, quick, slow, transfers, workspace, rootless
        )
        # Every page of this server has it, of JupyterLab and of Notebook 7.
        page = self.settings.setdefault("page_config_data", {})
        page["jupyterToJobWorkspace"] = str(root.resolve())
        self._puller = ResultPuller(jobs, self.log)
        self._feed = Feed(jobs, self._emit_change, self.log, self._puller)

    def initialize_handlers(self) -> None:
        """Add the routes; the feed begins with them."""
        self.handlers.append((r"/jupyter-to-job/api/(.*)", JobsHandler))
        self._puller.start()
        self._feed.start()
        _freeze_gc()
        self._loop.add_callback(_freeze_gc)  # again, once all of the server is loaded

    async def stop_extension(self) -> None:
        """End the feed. Jobs go on: they do not belong to this server."""
        self._feed.stop()
        self._puller.stop()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)

    def _emit_change(self, change: Job | Deleted) -> None:
        """Emit the job's name only: the routes decide who may read the job."""
        schema = DELETED_SCHEMA_ID if isinstance(change, Deleted) else JOB_SCHEMA_ID
        self._emit(schema, {"name": change.name})

    def _emit_transfer(self, key: str, count: int, total: int) -> None:
        self._emit(SUBMISSION_SCHEMA_ID, {"key": key, "bytes": count, "total": total})

    def _emit(self, schema: str, data: dict[str, object]) -> None:
        """Emit an event from any thread: the logger's listeners live on the event loop."""
        self._loop.add_callback(partial(self._emit_event, schema_id=schema, data=data))


def _freeze_gc() -> None:
    """Keep Python's full garbage collections from walking over all that the server has loaded.

    Reading a large journal causes a collection every few pages. Each one looked at 250,000 objects
    that are never freed, and blocked the server for 0.1 s and more. Our imports cause another one
    while the server starts: two thirds of what the extension costs there.
    """
    gc.freeze()


def _root(server: ServerApp, settings: Settings) -> tuple[Path, str | None]:
    """Return the folder that the server's paths count from, or why there is none."""
    if settings.workspace:
        return Path(settings.workspace), None
    contents = server.contents_manager
    if isinstance(contents, FileManagerMixin):
        return Path(contents.root_dir), None  # may be configured to differ from the server's
    kind = type(contents).__name__
    return Path(server.root_dir), f"This server's files are in no local folder ({kind})."
