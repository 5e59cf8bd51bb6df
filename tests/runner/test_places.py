"""The numbers of cells: those of the notebook that was sent, whatever earlier runs left in it."""

from __future__ import annotations

from collections.abc import Callable

from job_runner.protocol import layout
from job_runner.protocol.progress import progress
from jupyter_to_job.service.reading.cell_receipts import read_receipts

from .jobs import Job, banner, code, notebook

SOURCE = notebook(code("a = 1", "parameters"), "print(a)", "1 / b")


def test_a_failed_result_is_sent_again(job: Callable[..., Job]) -> None:
    """It has two cells of papermill's banner, which go, and a cell with parameters, which stays."""
    failed = job(SOURCE, parameters={"a": 2})
    assert failed.run() == 1
    assert str(failed.outcome().message).startswith("Cell 3 (In [4]) raised NameError")
    result = failed.result()
    assert len(result.cells) == 6 and len(banner(result)) == 2
    for parameters in ({}, {"a": 3}):
        again = job((failed.attempt() / layout.RESULT).read_text(), parameters=parameters)
        assert again.run() == 1
        assert str(again.outcome().message).startswith("Cell 6 (In [4]) raised NameError")
        assert len(again.result().cells) == 6, "the cell with the parameters is replaced"
        receipts = read_receipts(again.attempt() / layout.JOURNAL, max_line=1 << 20)
        assert [receipt.cell for receipt in receipts] == [1, 2, 3, 5]
        records = again.records()
        start = next(i for i, r in enumerate(records) if r["k"] == "cell_start" and r["i"] == 3)
        seen = progress(records[: start + 1])
        assert (seen.cells_done, seen.cells_total) == (3, 4)
        assert (seen.current_cell, seen.cells) == (5, 6)
