"""Large inputs and results, and a job that prints very much, in small: the soak has the sizes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.controllers import own_controller
from tests.cluster.large import MIB, check_large_input, check_large_result
from tests.cluster.live import check_live
from tests.cluster.place import ClusterPlace
from tests.cluster.product import DevPod


@pytest.mark.side_by_side
def test_an_input_while_the_controller_is_killed(
    box: Box, images: Images, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    folder = tmp_path_factory.mktemp("input")
    with (
        own_controller(box, images, "large") as mine,
        closing(ClusterPlace(folder, None, mine, images)) as place,
    ):
        check_large_input(place, mine, size=200 * MIB)


@pytest.mark.side_by_side
def test_a_result_while_the_connection_is_cut(
    box: Box, images: Images, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert dev_pod.cluster is box
    with closing(ClusterPlace(tmp_path_factory.mktemp("result"), None, dev_pod, images)) as place:
        check_large_result(place, megabytes=30)


def test_output_of_a_megabyte_a_second_is_seen_as_it_comes(
    tmp_path: Path, box: Box, images: Images, dev_pod: DevPod
) -> None:
    assert dev_pod.cluster is box
    with closing(ClusterPlace(tmp_path, None, dev_pod, images)) as place:
        check_live(place, rate=1_000_000, seconds=8)
