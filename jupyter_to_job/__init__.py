"""Jupyter to Job: submit the open notebook as a job and get it back executed."""

__version__ = "0.1.0"


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where the front end is built, for `jupyter-builder develop`, which links it."""
    return [{"src": "labextension", "dest": "jupyter-to-job"}]
