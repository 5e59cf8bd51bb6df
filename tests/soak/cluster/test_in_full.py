"""The outages, the loss of a node and the large things of `tests/cluster`, as long as in life."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster.box.boot import A100, Box, is_ready
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import without_controller
from tests.cluster.deliveries import Place as DeliveryPlace
from tests.cluster.large import (
    MIB,
    check_large_input,
    check_large_result,
    check_result_by_courier,
)
from tests.cluster.live import check_live
from tests.cluster.place import ClusterPlace
from tests.cluster.product import DevPod
from tests.cluster.scenes import (
    SubmittedJob,
    check_cut_off,
    check_outages,
    large_output,
    output_size,
    without_api_server,
    without_worker,
)

MEGABYTES = 300
pytestmark = pytest.mark.timeout(1500)


@pytest.mark.usefixtures("box")
def test_the_gateway_is_away_for_two_minutes(dev_pod: DevPod) -> None:
    check_outages(dev_pod, (without_controller, 120))


@pytest.mark.usefixtures("box")
def test_the_api_server_is_away_for_five_minutes(dev_pod: DevPod) -> None:
    check_outages(dev_pod, (without_api_server, 300))


def test_a_node_is_cut_off_for_good(box: Box, dev_pod: DevPod) -> None:
    """With the default patience of Kubernetes, which is five minutes."""
    check_cut_off(box, dev_pod, leaves_from="a100", stays_on="steadfast", timeout=600)


def test_a_node_is_cut_off_for_a_minute(box: Box, dev_pod: DevPod) -> None:
    job = SubmittedJob.counting(dev_pod, "minute", "-f", "crowd-gpu", "-d", "a100")
    printed = job.until_printed()
    with without_worker(box):
        wait_for("it is noticed", lambda: not is_ready(box.get("node", A100.name)), timeout=60)
    job.until_printed(more_than=printed)
    job.let_end()
    job.check_counted(job.until_ended(), None, printed)


def test_a_node_loses_its_power(box: Box, dev_pod: DevPod) -> None:
    """Nothing of its processes is left to send anything; the node is back only afterwards."""
    job = SubmittedJob.counting(dev_pod, "powerless", "-f", "crowd-gpu", "-d", "impatient")
    printed = job.until_printed()
    box.worker.power_off()
    try:
        ended = job.until_ended(timeout=180)
    finally:
        box.worker.power_on()
        wait_for("the worker is back", lambda: is_ready(box.get("node", A100.name)), timeout=90)
    job.check_counted(ended, "NodeLost", printed)


@pytest.fixture
def place(tmp_path: Path, box: Box, images: Images, dev_pod: DevPod) -> Iterator[ClusterPlace]:
    """A workspace on this machine; the controller is installed with the dev pod."""
    assert dev_pod.cluster is box
    with closing(ClusterPlace(tmp_path, None, dev_pod, images)) as made:
        made.bound = 900.0
        yield made


def test_an_input_of_two_gigabytes(place: ClusterPlace, dev_pod: DevPod) -> None:
    check_large_input(place, dev_pod, size=2048 * MIB)


def test_a_result_of_300_megabytes_in_two_pieces(place: ClusterPlace) -> None:
    check_large_result(place, MEGABYTES)


def test_a_result_of_300_megabytes_by_courier(box: Box, images: Images, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is box  # the controller is there
    check_result_by_courier(DeliveryPlace.make(dev_pod, images, "of-large"), MEGABYTES, timeout=900)


def test_output_of_five_megabytes_a_second(place: ClusterPlace) -> None:
    check_live(place, rate=5_000_000, seconds=60)


@pytest.mark.usefixtures("cluster")
def test_a_result_of_300_megabytes(dev_pod: DevPod) -> None:
    job = SubmittedJob.submit(dev_pod, "large", cells=large_output(MEGABYTES))
    ended = job.until_ended(timeout=600)
    assert (ended["state"], ended["delivery"]["state"]) == ("succeeded", "delivered"), ended
    assert output_size(dev_pod, ended) == MEGABYTES * 1_000_000
