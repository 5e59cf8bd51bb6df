"""A node without power; `test_nodes` has one without network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.box.boot import A100, Box, is_ready
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.workloads import delete_jobs, job, phases


@pytest.fixture
def box(box: Box) -> Iterator[Box]:
    """The box, whose worker is there again for the next test."""
    yield box
    wait_for("the worker is back", lambda: worker_is_ready(box))


def worker_is_ready(box: Box) -> bool:
    """Tell whether it is; raises `ProgramError`, with the log, if a program of it has ended."""
    box.worker.node.sandbox.check_all_running()
    return is_ready(box.get("node", A100.name))


def knows_end(box: Box) -> bool:
    """Tell whether the API server knows that the pod has ended."""
    return phases(box, "doomed") == ["Failed"]


def test_what_ran_on_a_node_without_power_has_ended_when_it_is_back(
    box: Box, images: Images
) -> None:
    volume = box.add_volume("disk", "ReadWriteOnce", claim="default/disk", node=A100.name)
    (volume.folder / "kept").write_text("kept")
    box.apply(job("doomed", images.notebook, "exec sleep 600", on=A100, gpus=1))
    wait_for("it runs", lambda: phases(box, "doomed") == ["Running"])

    box.worker.power_off()
    assert phases(box, "doomed") == ["Running"]  # as far as anybody can know
    box.worker.power_on()

    wait_for("the node is Ready", lambda: worker_is_ready(box) and knows_end(box))
    # Images and volumes are on its disk.
    box.apply(job("next", images.notebook, "true", on=A100, gpus=1))
    wait_for("the next Job runs", lambda: phases(box, "next") == ["Succeeded"])
    assert (volume.folder / "kept").read_text() == "kept"
    delete_jobs(box, "doomed", "next")
