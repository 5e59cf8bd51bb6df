"""Large inputs and results, and a job that prints very much, in small: the soak has the sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.large import MIB, check_large_input, check_large_result
from tests.cluster.live import check_live
from tests.cluster.place import ClusterPlace
from tests.cluster.product import DevPod

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place(tmp_path: Path, box: Box, images: Images, dev_pod: DevPod) -> Iterator[ClusterPlace]:
    """A workspace on this machine; the controller is installed with the dev pod."""
    assert dev_pod.cluster is box
    with closing(ClusterPlace(tmp_path, None, box, images)) as made:
        yield made


def test_an_input_while_the_controller_is_killed(place: ClusterPlace, dev_pod: DevPod) -> None:
    check_large_input(place, dev_pod, size=200 * MIB)


def test_a_result_while_the_connection_is_cut(place: ClusterPlace) -> None:
    check_large_result(place, megabytes=30)


def test_output_of_a_megabyte_a_second_is_seen_as_it_comes(place: ClusterPlace) -> None:
    check_live(place, rate=1_000_000, seconds=8)
