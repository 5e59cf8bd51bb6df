"""The table of reasons is the design's list, and has every reason that this version writes."""

from __future__ import annotations

import re
from pathlib import Path

from jupyter_to_job.domain.reasons import DAMAGED, REASONS, Kind, kind_of

ROOT = Path(__file__).parents[2]
CONTRACT = """
    CellError KernelDied OutOfMemory GpuOutOfMemory DeadlineExceeded ExitedEarly InputRequested
    DiskFull BadNotebook NoKernel RunnerMissing ImageUnavailable Unschedulable QuotaExceeded
    GroupLimit    Evicted Preempted NodeLost Terminated Lost BackendError
"""
WRITERS = ("job_runner", "jupyter_to_job/controller", "jupyter_to_job/dispatcher")


def test_the_list_is_the_contract() -> None:
    assert list(REASONS) == [*CONTRACT.split(), DAMAGED]  # the list is open


def test_what_is_written_is_in_the_list() -> None:
    written = {
        reason
        for folder in WRITERS
        for path in (ROOT / folder).rglob("*.py")
        for reason in re.findall(
            r'(?:End\(|_of_cell\(|return |--reason", |finish\(\w+, )"([A-Z]\w+)"', path.read_text()
        )
    }
    assert {"CellError", "Lost", "OutOfMemory", "RunnerMissing"} <= written
    assert written <= set(REASONS)


def test_the_list_is_open() -> None:
    assert kind_of("HitByMeteorite") is None
    assert kind_of(None) is None
    assert {kind_of("Terminated"), kind_of("Lost")} == {Kind.STOPPED}
