"""The place of a cell: its index for records, and its number for people.

The number is the cell's place among all cells of the notebook that was sent, as JupyterLab shows it
in its status bar.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellPlace:
    """A cell that is executed.

    `index` is that in the prepared notebook. `number` counts the cells of the notebook that was
    sent, from 1; the cell with the parameters that the run has added has 0. `is_last` tells that no
    other cell is executed after it.
    """

    index: int
    number: int
    is_last: bool = False

    def describe(self, execution_count: int | None = None) -> str:
        """Return `cell 3`, with the execution count that the kernel gave it `cell 3 (In [2])`."""
        name = f"cell {self.number}" if self.number else "the cell with the parameters"
        return name if execution_count is None else f"{name} (In [{execution_count}])"
