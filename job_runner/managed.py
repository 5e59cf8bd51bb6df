"""Our engine under papermill's NotebookExecutionManager: records become its callbacks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from . import reasons
from .engine import Engine
from .kernel import Kernel
from .prepare import code_cells
from .protocol.fold import Run
from .reasons import End


def execute(nb_man: Any, kernel_name: str) -> None:
    """Execute all cells; papermill reads errors from outputs and metadata, and raises them."""
    end = asyncio.run(_execute(nb_man, kernel_name))
    if end.reason not in (None, "CellError"):
        raise RuntimeError(end.message)


async def _execute(nb_man: Any, kernel_name: str) -> End:
    notebook = nb_man.nb
    run = Run(notebook)
    loop = asyncio.get_running_loop()

    def emit(record: dict[str, Any]) -> None:
        if record["k"] == "cell_start":
            nb_man.cell_start(notebook.cells[record["i"]], record["i"])
        elif record["k"] == "cell_end":
            run.close()
            cell = notebook.cells[record["i"]]
            cell.execution_count = record["execution_count"]
            if not record["ok"]:
                nb_man.cell_exception(cell, record["i"])
            nb_man.cell_complete(cell, record["i"])
        else:
            run.feed(record)

    kernel = Kernel(kernel_name)
    try:
        await kernel.start(Path.cwd(), {})
        await kernel.ready()
        engine = Engine(kernel, emit, lambda _: loop.create_future(), lambda: False)
        return await engine.run([(i, notebook.cells[i]) for i in code_cells(notebook)])
    except reasons.RunFailed as failure:
        raise RuntimeError(failure.end.message) from failure
    finally:
        await kernel.close()
