"""A node that is cut off, while jobs run on it."""

from __future__ import annotations

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.product import DevPod
from tests.cluster.scenes import check_cut_off, give_worker_back


@pytest.mark.side_by_side(-1)  # it waits most of its time
def test_cut_off_for_a_minute_and_for_good(kept_worker: Box, dev_pod: DevPod) -> None:
    """The cluster waits two seconds with one of the jobs, and five minutes with the other."""
    try:
        check_cut_off(kept_worker, dev_pod, leaves_from="impatient", stays_on="a100", timeout=180)
    finally:
        give_worker_back(kept_worker)
