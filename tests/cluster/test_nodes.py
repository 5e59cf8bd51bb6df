"""A node that is cut off, while jobs run on it."""

from __future__ import annotations

from tests.cluster.box.boot import Box
from tests.cluster.product import DevPod
from tests.cluster.scenes import check_cut_off


def test_cut_off_for_a_minute_and_for_good(box: Box, dev_pod: DevPod) -> None:
    """The cluster waits two seconds with one of the jobs, and five minutes with the other."""
    check_cut_off(box, dev_pod, leaves_from="impatient", stays_on="a100", timeout=180)
