"""Who sends what a dialog said gets a job that runs so, or hears what is another now."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes.nodes import NodeRecord
from jupyter_to_job.exchange import FileExchange

from ..pretend_cluster import PINNED_IMAGE
from .test_dev_pods_world import CATALOG, NODES, NOTEBOOK_PATH, DevPod, dev_pod, node
from .test_dev_pods_world import exchange as exchange

KEY = {"Idempotency-Key": "one-dialog"}


@dataclass
class World:
    """A dev pod with a claim of one node, and what may change around it."""

    pod: DevPod
    catalog: Path
    nodes: list[NodeRecord]
    patch: dict[str, Any] = field(default_factory=dict)

    def preflight(self, **choices: Any) -> Any:
        """Return what the dialog says."""
        return self.pod.post("preflight", notebook=NOTEBOOK_PATH, **choices)


@pytest.fixture
def world(exchange: FileExchange) -> Any:
    nodes, patch = [*NODES], dict[str, Any]()
    with dev_pod(exchange, "ReadWriteOnce", nodes, patch) as pod:
        pod.headers |= KEY
        yield World(pod, exchange.root.parent / "flavors.yaml", nodes, patch)


def more_nodes(world: World) -> None:
    """The device is on another node, too: the claim stays behind."""
    world.nodes.append(node("more", "near"))


def hide_folder(world: World) -> None:
    """The administrator mounts something of their own where the claim is."""
    mount = {"name": "theirs", "mountPath": "/home"}
    world.patch["spec"] = {"containers": [{"name": "notebook", "volumeMounts": [mount]}]}


def edit(old: str, new: str) -> Any:
    def change(world: World) -> None:
        text = CATALOG.replace(old, new)
        assert text != CATALOG
        world.catalog.write_text(text)

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (more_nodes, "which folders the job sees"),
        (hide_folder, "which folders the job sees"),
        (edit("cpu: 1", "cpu: 2"), "the flavor"),
        (edit("kind: near", "kind: far"), "the device"),
        (edit("near: {", "near: {image: 'registry/other:1', "), "the image"),
    ],
)
def test_another_plan_than_was_told_is_refused_and_told_anew(
    world: World, exchange: FileExchange, change: Any, part: str
) -> None:
    before = world.preflight()
    assert (before["isolated"], before["mounts"]) == (False, ["/home"])
    change(world)
    refused = world.pod.submit(plan=before["plan"])["error"]
    assert refused["code"] == "plan_changed"
    assert part in refused["message"]
    assert exchange.jobs() == frozenset()

    # The dialog shows the new one, and another SEND of the same submission takes it.
    now = world.preflight()
    job = world.pod.submit(plan=now["plan"])
    assert (job["isolated"], job["mounts"]) == (now["isolated"], now["mounts"])
    # Sent once more, as after a lost answer, it is the same job, whatever has changed.
    world.catalog.write_text(CATALOG.replace("cpu: 1", "cpu: 3"))
    assert world.pod.submit(plan=now["plan"])["name"] == job["name"]


def test_another_device_is_another_plan(world: World) -> None:
    near = world.preflight(device="near")
    refused = world.pod.submit(device="far", plan=near["plan"])["error"]
    assert refused["code"] == "plan_changed"
    assert "the device, which folders the job sees" in refused["message"]


def test_the_same_plan_is_taken_and_words_do_not_count(world: World) -> None:
    plan = world.preflight()["plan"]
    edit("small: {", "small: {title: Tiny, ")(world)
    assert world.pod.submit(plan=plan)["mounts"] == ["/home"]


def test_who_was_told_nothing_gets_the_plan_of_the_moment(world: World) -> None:
    more_nodes(world)
    assert world.pod.submit()["isolated"]
    assert world.pod.submit(parameters={"a": 1}, plan=None)["error"]["code"] == "conflict"  # KEY


def test_a_rerun_is_held_to_its_plan_too(world: World) -> None:
    job = world.pod.submit()
    plan = world.preflight()["plan"]
    edit("cpu: 1", "cpu: 2")(world)
    route = f"jobs/{job['name']}/rerun"
    world.pod.headers["Idempotency-Key"] = "another-dialog"
    assert world.pod.post(route, plan=plan)["error"]["code"] == "plan_changed"
    world.catalog.write_text(CATALOG)
    assert world.pod.post(route, plan=plan)["mounts"] == ["/home"]


def test_a_dev_pod_that_was_made_anew(exchange: FileExchange) -> None:
    """The page stays open while the server is started again with another image and user."""
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        plan = pod.post("preflight", notebook=NOTEBOOK_PATH)["plan"]
    image = PINNED_IMAGE.replace("a" * 64, "b" * 64)
    user = {"runAsUser": 2345}
    with dev_pod(exchange, "ReadWriteMany", NODES, image=image, securityContext=user) as pod:
        refused = pod.submit(plan=plan)["error"]
    assert refused["code"] == "plan_changed"
    assert refused["message"].endswith("the image, the user or the variables of your pod.")


def test_a_plan_that_is_none_is_no_plan(world: World) -> None:
    assert world.pod.submit(plan={"folders": 1})["error"]["code"] == "bad_input"
    assert world.pod.submit(plan={"weather": "fair"})["error"]["code"] == "plan_changed"
