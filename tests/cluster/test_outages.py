"""The gateway, the API server, or the room of the exchange is missing for a while."""

from __future__ import annotations

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.controllers import own_controller, without_controller
from tests.cluster.product import HOME, DevPod
from tests.cluster.scenes import FINAL, SubmittedJob, check_outages, without_api_server

MIB = 1 << 20
RESERVE = 32 * MIB


class SmallExchange:
    """The exchange of a controller of its own, which can be full."""

    def __init__(self, dev_pod: DevPod) -> None:
        self._box = dev_pod.box
        self._folder = dev_pod.controller.exchange(self._box).root

    def leave(self, free: int) -> None:
        """Fill it until so many bytes are free."""
        filler = self._folder / "filler"
        script = (  # again if a job has written between the look and the filling
            f"for attempt in $(seq 20); do "
            f"rm -f {filler}; set -- $(stat --file-system --format '%a %S' {self._folder}) && "
            f"fallocate --length $(($1 * $2 - {free})) {filler} && exit; done; exit 1"
        )
        self._box.node.sandbox.run(["sh", "-c", script])

    def clear(self) -> None:
        """Free all that `leave` has filled."""
        self._box.node.sandbox.run(["rm", str(self._folder / "filler")])


@pytest.mark.side_by_side
def test_the_exchange_is_full_for_a_while(box: Box, images: Images, dev_pod: DevPod) -> None:
    """Nothing new is taken below the reserve, and runs end; without any room their ends wait."""
    assert dev_pod.cluster is box  # the first controller is there
    settings = {"JUPYTER_TO_JOB_DISK_RESERVE": str(RESERVE)}
    with own_controller(box, images, "small", settings, size="128m") as mine:
        check_full(mine)


def check_full(mine: DevPod) -> None:
    """Check what becomes of runs that end meanwhile."""
    exchange = SmallExchange(mine)
    first, second = (
        SubmittedJob.counting(mine, stem, "-f", "crowd") for stem in ("first", "second")
    )
    printed = [job.until_printed() for job in (first, second)]

    exchange.leave(RESERVE * 3 // 4)
    answer = mine.run("sh", "-c", f"jupyter-to-job submit {HOME}/first.ipynb 2>&1; echo =$?")
    assert "almost full" in answer
    assert "=4" in answer
    first.let_end()
    first.check_counted(first.until_ended(), None, printed[0])

    exchange.leave(0)
    second.let_end()
    second.until_runner_ended()
    assert second.job()["state"] not in FINAL
    exchange.clear()
    second.check_counted(second.until_ended(), None, printed[1])


@pytest.mark.side_by_side(-1)
def test_the_gateway_is_away_for_a_while(box: Box, images: Images, dev_pod: DevPod) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    with own_controller(box, images, "away") as mine:
        check_outages(mine, (without_controller, 10))


@pytest.mark.usefixtures("box")
def test_the_api_server_is_away_for_a_while(dev_pod: DevPod) -> None:
    check_outages(dev_pod, (without_api_server, 15))
