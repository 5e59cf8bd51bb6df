"""`papermill --engine job_runner`. Tiny: papermill loads every registered engine at its import."""

from __future__ import annotations

from typing import Any

from papermill.engines import Engine


class JobRunnerEngine(Engine):  # type: ignore[misc]
    """papermill's engine interface on our execution loop."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> None:
        """Execute the cells of `nb_man.nb`, calling papermill back as its own engine does."""
        from .adapter import execute
        from .options import Options

        execute(nb_man, kernel_name, Options.from_arguments(options))
