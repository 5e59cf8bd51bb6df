"""A node without network, and one without power: for a while, and until a Job gives it up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.cluster.box.boot import A100, T4, Box, is_ready
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.workloads import delete_jobs, job, phases, pods


@pytest.fixture
def box(box: Box) -> Iterator[Box]:
    """The box, whose worker is there again for the next test."""
    yield box
    wait_for("the worker is back", lambda: worker_is_ready(box), timeout=60)


def worker_is_ready(box: Box) -> bool:
    return is_ready(box.get("node", A100.name))


def test_a_node_without_network_runs_on_and_comes_back(box: Box, images: Images) -> None:
    script = "until [ -e /tmp/stop ]; do date +%s >> /tmp/ticks; sleep 1; done"
    box.apply(job("ticking", images.notebook, script, on=A100, gpus=1))
    wait_for("it runs", lambda: phases(box, "ticking") == ["Running"], timeout=60)

    box.worker.cut_off()
    wait_for("the node is NotReady", lambda: not worker_is_ready(box), timeout=90)
    box.worker.reconnect()
    wait_for("the node is Ready", lambda: worker_is_ready(box), timeout=90)

    name = pods(box, "ticking")[0]["metadata"]["name"]
    ticks = [int(line) for line in box.kubectl("exec", name, "--", "cat", "/tmp/ticks").split()]
    gaps = [later - earlier for earlier, later in pairwise(ticks)]
    assert len(ticks) > 10
    assert max(gaps) < 10
    assert pods(box, "ticking")[0]["status"]["containerStatuses"][0]["restartCount"] == 0
    delete_jobs(box, "ticking")


def test_what_ran_on_a_node_without_power_has_ended_when_it_is_back(
    box: Box, images: Images
) -> None:
    volume = box.add_volume("disk", "ReadWriteOnce", claim="default/disk", node=A100.name)
    (volume.folder / "kept").write_text("kept")
    box.apply(job("doomed", images.notebook, "exec sleep 600", on=A100, gpus=1))
    wait_for("it runs", lambda: phases(box, "doomed") == ["Running"], timeout=60)

    box.worker.power_off()
    assert phases(box, "doomed") == ["Running"]  # as far as anybody can know
    box.worker.power_on()

    wait_for("its end is known", lambda: phases(box, "doomed") == ["Failed"], timeout=90)
    wait_for("the node is Ready", lambda: worker_is_ready(box), timeout=90)
    # Images and volumes are on its disk.
    box.apply(job("next", images.notebook, "true", on=A100, gpus=1))
    wait_for("the next Job runs", lambda: phases(box, "next") == ["Succeeded"], timeout=60)
    assert (volume.folder / "kept").read_text() == "kept"
    delete_jobs(box, "doomed", "next")


def test_a_job_leaves_a_node_that_stays_away(box: Box, images: Images) -> None:
    leaving = job("leaving", images.notebook, "exec sleep 600", gpus=1)
    away = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
    pod = leaving["spec"]["template"]["spec"]
    pod["tolerations"] = [
        {"key": f"node.kubernetes.io/{key}", **away} for key in ("not-ready", "unreachable")
    ]
    leaving["spec"]["backoffLimit"] = 1
    # The T4 node is full for as long as the Job has to be scheduled.
    box.apply(job("filler", images.notebook, "exec sleep 600", on=T4, gpus=2))
    wait_for("the other node is full", lambda: phases(box, "filler") == ["Running"], timeout=60)
    box.apply(leaving)
    wait_for("it runs", lambda: phases(box, "leaving") == ["Running"], timeout=60)
    first = pods(box, "leaving")[0]["metadata"]["uid"]
    delete_jobs(box, "filler")

    box.worker.power_off()

    def moved() -> bool:
        return any(
            pod["metadata"]["uid"] != first and pod["status"]["phase"] == "Running"
            for pod in pods(box, "leaving")
        )

    wait_for("it runs on the other node", moved, timeout=120)
    lost = next(pod for pod in pods(box, "leaving") if pod["metadata"]["uid"] == first)
    reasons = [condition.get("reason") for condition in lost["status"]["conditions"]]
    assert "DeletionByTaintManager" in reasons
    box.worker.power_on()
    delete_jobs(box, "leaving")
