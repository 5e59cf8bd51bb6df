"""Runs that end by themselves or by their limits."""

from __future__ import annotations

import pytest

from tests.cluster.product import DevPod
from tests.cluster.scenes import COUNT, EAT_MEMORY, SubmittedJob, large_output, output_size

MEGABYTES = 30
CROWD = ("-f", "crowd")
pytestmark = pytest.mark.side_by_side


def test_a_run_past_its_limit(dev_pod: DevPod) -> None:
    limit = ("--max-runtime", "10s")
    job = SubmittedJob.submit(dev_pod, "deadline", *CROWD, *limit, cells=(COUNT,))
    job.check_counted(job.until_ended(), "DeadlineExceeded", at_least=10)


def test_out_of_memory(dev_pod: DevPod) -> None:
    """On cgroup v1 the kernel process alone, on v2 the whole container (see `test_hurt`)."""
    cells = ("print(0, flush=True)", EAT_MEMORY)
    job = SubmittedJob.submit(dev_pod, "memory", *CROWD, cells=cells)
    ended = job.until_ended()
    assert "512 MiB" in ended["message"]
    job.check_counted(ended, "OutOfMemory", at_least=1)


def test_a_large_result(dev_pod: DevPod) -> None:
    job = SubmittedJob.submit(dev_pod, "large", *CROWD, cells=large_output(MEGABYTES))
    ended = job.until_ended()
    assert (ended["state"], ended["delivery"]["state"]) == ("succeeded", "delivered"), ended
    assert output_size(dev_pod, ended) == MEGABYTES * 1_000_000
