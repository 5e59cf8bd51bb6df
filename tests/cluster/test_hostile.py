"""A notebook in a real pod that writes its journal itself: it harms its own result only."""

from __future__ import annotations

import json

import pytest

from job_runner.protocol import layout
from tests.cluster.box.boot import Box
from tests.cluster.controllers import controller_restarts
from tests.cluster.deliveries import exchange_of
from tests.cluster.large import AGENT_MEMORY, MIB, check_memory_of_controller
from tests.cluster.peaks import peaks_of
from tests.cluster.product import DevPod
from tests.cluster.scenes import AGENT, SubmittedJob, text_of

pytestmark = pytest.mark.side_by_side
LONGEST = 64 * MIB
"""Bytes of a record that are kept (JUPYTER_TO_JOB_RECORD_CAP)."""
FORGE = """\
import pathlib, time
from job_runner.protocol.journal.journal import encode
(journal,) = pathlib.Path("/jupyter-to-job").glob("*/attempt-1/journal")
while b"as it was" not in (journal / "00000001.jsonl").read_bytes():
    time.sleep(0.05)

def forge(number, text):
    output = {"output_type": "stream", "name": "stdout", "text": text}
    record = encode({"t": time.time(), "k": "output", "i": 0, "output": output})
    (journal / f"{number:08d}.jsonl").write_bytes(record)

forge(99_999_999, "of a segment that no runner writes")
forge(90_000_000, "of the segment in which the gateway says that it was cut")
forge(3, "of a segment after the endless line")
(journal / "00000004.jsonl").mkdir()
(journal / "00000005.jsonl").symlink_to("/proc/self/environ")
with open(journal / "00000002.jsonl", "wb") as file:
    for _ in range(100):
        file.write(b"x" * 1_000_000)
"""
"""A cell that writes five files named like segments, and a line of 100 MB without an end."""


def test_it_writes_its_journal_itself(box: Box, dev_pod: DevPod) -> None:
    before = controller_restarts(box)
    neighbour = SubmittedJob.counting(dev_pod, "neighbour", "-f", "crowd")
    printed = neighbour.until_printed()

    with peaks_of({"agent": (AGENT, b"hostile-")}) as peaks:
        hostile = SubmittedJob.submit(
            dev_pod, "hostile", "-f", "crowd", cells=("print('as it was')", FORGE)
        )
        job = hostile.until_ended()

    assert (job["state"], job["reason"]) == ("succeeded", None), job
    assert job["message"] == "Its journal was cut: it has a record of more than 64 MiB."
    result = hostile.check_delivered(job)
    printed_by_it = text_of(result)
    assert "as it was" in printed_by_it
    assert "segment" not in printed_by_it
    assert "the journal of this run ends here" in json.dumps(result)
    folder = exchange_of(hostile).directory(hostile.name) / "attempt-1" / layout.JOURNAL
    kept = sum(path.stat().st_size for path in folder.iterdir())
    assert kept < LONGEST + 8 * MIB
    assert not (folder / "99999999.jsonl").exists()
    assert 0 < peaks["agent"] < AGENT_MEMORY
    check_memory_of_controller()
    assert controller_restarts(box) == before
    neighbour.until_printed(more_than=printed)
    neighbour.let_end()
    neighbour.check_counted(neighbour.until_ended(), None, printed)
