"""Much output: it is on the disk and not in memory, and what is open is closed again."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest

from job_runner.protocol import layout
from job_runner.protocol.result.result import fold_result
from job_runner.protocol.result.spool import Spool

from .jobs import Job, notebook, stream, until

MIB = 1 << 20
CELLS = 30
LINE = "x" * 99 + "\n"
CELL = f"print({LINE!r} * 10_500, end='')\nfor i in range(60): display(i)"


@pytest.fixture
def printing(job: Callable[..., Job]) -> Job:
    return job(notebook(*[CELL] * CELLS))


def test_neither_memory_nor_descriptors_grow_with_the_output(printing: Job) -> None:
    process = printing.start()
    seen: list[tuple[int, int]] = []

    def look() -> bool:
        """Take down the runner's memory and descriptors until it has ended."""
        try:
            runner = psutil.Process(process.pid)
            seen.append((runner.memory_info().rss, runner.num_fds()))
        except psutil.Error:
            pass
        return process.poll() is not None

    until(look, "the end of the run")
    assert process.returncode == 0
    cells = printing.result().cells
    assert all(len(stream(cell)) == 1_050_000 and len(cell.outputs) == 61 for cell in cells)
    assert max(memory for memory, _ in seen) < 122 * MIB
    middle = seen[len(seen) // 3 : -len(seen) // 3]
    assert max(count for _, count in middle) <= min(count for _, count in middle) + 2
    result = (printing.attempt() / layout.RESULT).read_bytes()
    with fold_result(printing.directory, printing.attempt(), Spool.in_memory()) as again:
        assert b"".join(again.chunks()) == result


def test_one_long_line_that_is_overwritten(job: Callable[..., Job]) -> None:
    """More than is kept in memory of an unfinished line, and a late carriage return."""
    said = job(notebook("print('x' * 3_000_000, end='', flush=True)", "1"))
    overwritten = job(notebook("print('x' * 3_000_000, end='', flush=True)\nprint('\\rabc')"))
    assert said.run() == 0 and overwritten.run() == 0
    assert stream(said.result().cells[0]) == "x" * 3_000_000
    assert stream(overwritten.result().cells[0]) == "abc" + "x" * 2_999_997 + "\n"
