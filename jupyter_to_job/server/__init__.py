"""The Jupyter Server extension: REST and events for the jobs of this server's workspace."""

from __future__ import annotations

from .. import __version__ as __version__  # what `jupyter server extension list` shows


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    from .app import JobsExtension

    return [{"module": "jupyter_to_job.server", "app": JobsExtension}]
