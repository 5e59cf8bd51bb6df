"""Volumes that both nodes see, and volumes of one node."""

from __future__ import annotations

import pytest

from tests.cluster.box.boot import A100, T4, Box
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.scenes import until_worker_is_free
from tests.cluster.workloads import delete_jobs, job, phases, pods, with_volume

pytestmark = pytest.mark.side_by_side


@pytest.mark.side_by_side(2)
def test_a_shared_volume_is_the_same_on_both_nodes(box: Box, images: Images) -> None:
    until_worker_is_free(box)
    modes = ("ReadWriteMany", "ReadOnlyMany")
    volume = box.add_volume("shared", *modes, claim="default/shared")
    box.apply(volume.claim_manifest())
    write = "echo from $HOSTNAME > /data/$HOSTNAME"
    for name, node in (("writer-t4", T4), ("writer-a100", A100)):
        box.apply(with_volume(job(name, images.notebook, write, on=node), "shared", "/data"))
    wait_for(
        "both have written",
        lambda: phases(box, "writer-t4", "writer-a100") == ["Succeeded", "Succeeded"],
    )

    read = "cat /data/* && ! touch /data/refused 2>/dev/null"
    reader = job("reader", images.notebook, read, on=A100)
    box.apply(with_volume(reader, "shared", "/data", read_only=True))
    wait_for("it was read, and not written", lambda: phases(box, "reader") == ["Succeeded"])

    said = box.kubectl("logs", "job/reader")
    assert "from writer-t4" in said
    assert "from writer-a100" in said
    delete_jobs(box, "writer-t4", "writer-a100", "reader")


@pytest.mark.side_by_side(2)
def test_a_volume_of_one_node_takes_its_pods_there(box: Box, images: Images) -> None:
    until_worker_is_free(box)
    volume = box.add_volume("mine", "ReadWriteOnce", claim="default/mine", node=A100.name)
    box.apply(volume.claim_manifest())
    user = with_volume(job("user", images.notebook, "echo here > /data/file"), "mine", "/data")
    user["spec"]["template"]["spec"]["securityContext"] = {"fsGroup": 1000}
    stranger = job("stranger", images.notebook, "true", on=T4)
    box.apply(user, with_volume(stranger, "mine", "/data"))

    wait_for("it is used", lambda: phases(box, "user") == ["Succeeded"])

    (pod,) = pods(box, "user")
    assert pod["spec"]["nodeName"] == A100.name
    assert (volume.folder / "file").read_text() == "here\n"
    assert volume.folder.stat().st_gid == 1000
    assert phases(box, "stranger") == ["Pending"]
    delete_jobs(box, "user", "stranger")


def test_a_volume_can_be_full(box: Box, images: Images) -> None:
    volume = box.add_volume(
        "small", "ReadWriteOnce", claim="default/small", node=T4.name, size="8m"
    )
    box.apply(volume.claim_manifest())
    write = "python3 -c \"open('/data/{}', 'wb').write(bytes({}))\""
    fill = f"{write.format('fits', 7_000_000)} && ! {write.format('too-much', 2_000_000)}"
    box.apply(with_volume(job("filler", images.notebook, fill), "small", "/data"))

    wait_for("it is full", lambda: phases(box, "filler") == ["Succeeded"])

    assert "No space left" in box.kubectl("logs", "job/filler")
    delete_jobs(box, "filler")
