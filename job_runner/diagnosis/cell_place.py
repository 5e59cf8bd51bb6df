"""The place of a cell: its index for records, and its number for people.

A notebook shows numbers beside code cells that ran, and no others. So cells are counted as `In [n]`
counts them in the notebook that was sent, run once from the top.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellPlace:
    """A cell that is executed.

    `index` is that in the prepared notebook. `number` counts the code cells that run, from 1; the
    cell with the parameters that the run has added has 0.
    """

    index: int
    number: int

    def describe(self, execution_count: int | None = None) -> str:
        """Return `cell 3`, and with the execution count that the kernel gave it `cell 3 (In [4])`.

        With parameters it is one more than the number, for the cell that the run has added.
        """
        name = f"cell {self.number}" if self.number else "the cell with the parameters"
        return name if execution_count is None else f"{name} (In [{execution_count}])"
