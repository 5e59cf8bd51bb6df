"""Tells a notebook that can run from anything else, with the place of the fault."""

from __future__ import annotations

from ...domain.errors import BadNotebook, no_room
from . import notebook_summary
from .notebook_summary import NotebookSummary


def summarize_notebook(data: bytes, label: str) -> NotebookSummary:
    """Check that `data` is a notebook that can run, and return its outline.

    Raises BadNotebook, with line and column where the JSON is broken, and Unavailable where a large
    one cannot be handed to the process that reads it.
    """
    try:
        return notebook_summary.summarize(data, label)
    except notebook_summary.UnreadableNotebook as fault:
        raise BadNotebook(fault.message, fault.hint) from fault
    except OSError as error:
        raise no_room(f"{label} cannot be looked at", error) from error


def kernel_of(data: bytes, label: str) -> str | None:
    """Check a notebook, and return the kernel it names, if it does. Raises BadNotebook."""
    return summarize_notebook(data, label).kernel
