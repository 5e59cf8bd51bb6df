"""Our engine under papermill's NotebookExecutionManager: records become its callbacks."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import nbformat

from . import reasons
from .engine import Engine
from .kernel import Kernel
from .monitor import Monitor
from .prepare import code_cells
from .protocol.fold import NotebookFold
from .reasons import End
from .supervise import supervise
from .usage import Usage


def execute(nb_man: Any, kernel_name: str) -> None:
    """Execute all cells; papermill itself finds cells' errors in the outputs, and raises them.

    Raises RuntimeError for every other end.
    """
    end = asyncio.run(_execute(nb_man, kernel_name))
    if end.reason not in (None, "CellError", "InputRequested"):
        raise RuntimeError(f"{end.reason}: {end.message}")


class _Manager:
    """Takes the engine's records into papermill's notebook."""

    def __init__(self, nb_man: Any) -> None:
        self._nb_man = nb_man
        self._cells = nb_man.nb.cells
        self._fold = NotebookFold.over(nb_man.nb)

    def take(self, record: dict[str, Any]) -> None:
        index = record.get("i")
        if record["k"] == "cell_start":
            self._nb_man.cell_start(self._cells[index], index)
        elif record["k"] == "cell_end":
            self._end(self._cells[index], index, record)
        else:
            if "output" in record:
                # papermill may save at any moment, and can write nothing but nodes.
                record = {**record, "output": nbformat.from_dict(record["output"])}
            self._fold.feed({"t": time.time(), **record})
            self._nb_man.autosave_cell()

    def _end(self, cell: Any, index: int | None, record: dict[str, Any]) -> None:
        self._fold.result()
        cell.execution_count = record["execution_count"]
        if not record["ok"]:
            self._nb_man.cell_exception(cell, index)
        self._nb_man.cell_complete(cell, index)


async def _execute(nb_man: Any, kernel_name: str) -> End:
    notebook = nb_man.nb
    kernel = Kernel(kernel_name, mark=f"papermill-{id(nb_man)}")
    kindly = False
    try:
        await kernel.start(Path.cwd(), {})
        await kernel.ready()
        notebook.metadata.language_info = nbformat.from_dict(kernel.language_info)
        with Monitor(kernel.pid, None, Usage(), os.environ) as monitor:
            end = await supervise(
                Engine(kernel, _Manager(nb_man).take),
                kernel,
                [(index, notebook.cells[index]) for index in code_cells(notebook)],
                stop=asyncio.get_running_loop().create_future(),
                limit=None,
                monitor=monitor,
            )
        kindly = end.reason != "KernelDied"
        return end
    except reasons.RunFailed as failure:
        raise RuntimeError(failure.end.message) from failure
    finally:
        await kernel.close(kindly=kindly)
