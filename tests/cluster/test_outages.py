"""The gateway, the API server, or the room of the exchange is missing for a while."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.box.boot import T4, Box
from tests.cluster.box.volumes import Volume
from tests.cluster.product import HOME, NAMESPACE, DevPod
from tests.cluster.scenes import (
    FINAL,
    SubmittedJob,
    check_outages,
    until_served,
    without_api_server,
    without_controller,
)

MIB = 1 << 20
RESERVE = 32 * MIB


class SmallExchange:
    """A volume of the controller that can be full."""

    def __init__(self, box: Box, volume: Volume) -> None:
        self._box = box
        self._folder = volume.folder

    def leave(self, free: int) -> None:
        """Fill it until so many bytes are free."""
        filler = self._folder / "filler"
        script = (
            f"rm -f {filler}; set -- $(stat --file-system --format '%a %S' {self._folder}) && "
            f"fallocate --length $(($1 * $2 - {free})) {filler}"
        )
        self._box.node.sandbox.run(["sh", "-c", script])

    def clear(self) -> None:
        """Free all that `leave` has filled."""
        self._box.node.sandbox.run(["rm", str(self._folder / "filler")])


@pytest.fixture
def small_exchange(box: Box, dev_pod: DevPod) -> Iterator[SmallExchange]:
    """What the controller has in place of its exchange for as long as the test lasts."""
    claim = "small-exchange"
    volume = box.add_volume(
        claim, "ReadWriteOnce", claim=f"{NAMESPACE}/{claim}", node=T4.name, size="128m"
    )
    box.apply(volume.claim_manifest())
    mount = {"name": "exchange", "persistentVolumeClaim": {"claimName": claim}}
    reserve = {"name": "JUPYTER_TO_JOB_DISK_RESERVE", "value": str(RESERVE)}
    container = {"name": "controller", "env": [reserve]}
    patch = {"spec": {"template": {"spec": {"volumes": [mount], "containers": [container]}}}}
    controller = ("deployment/controller", "-n", NAMESPACE)
    box.kubectl("patch", *controller, "-p", json.dumps(patch))
    box.kubectl("rollout", "status", *controller, "--timeout=90s", timeout=100)
    until_served(dev_pod)
    yield SmallExchange(box, volume)
    box.kubectl("rollout", "undo", *controller)
    box.kubectl("rollout", "status", *controller, "--timeout=90s", timeout=100)
    until_served(dev_pod)


def test_the_exchange_is_full_for_a_while(dev_pod: DevPod, small_exchange: SmallExchange) -> None:
    """Nothing new is taken below the reserve, and runs end; without any room their ends wait."""
    first, second = (
        SubmittedJob.counting(dev_pod, stem, "-f", "crowd") for stem in ("first", "second")
    )
    printed = [job.until_printed() for job in (first, second)]

    small_exchange.leave(RESERVE * 3 // 4)
    answer = dev_pod.run("sh", "-c", f"jupyter-to-job submit {HOME}/first.ipynb 2>&1; echo =$?")
    assert "almost full" in answer
    assert "=4" in answer
    first.let_end()
    first.check_counted(first.until_ended(), None, printed[0])

    small_exchange.leave(0)
    second.let_end()
    second.until_runner_ended()
    assert second.job()["state"] not in FINAL
    small_exchange.clear()
    second.check_counted(second.until_ended(), None, printed[1])


@pytest.mark.usefixtures("box")
def test_the_gateway_and_then_the_api_server_are_away_for_a_while(dev_pod: DevPod) -> None:
    check_outages(dev_pod, (without_controller, 10), (without_api_server, 15))
