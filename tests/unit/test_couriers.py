"""Couriers with a pretend cluster: how one is started, what becomes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from job_runner.protocol import layout
from jupyter_to_job.controller.couriers.couriers import MAX_COURIERS, MAX_OF_CLAIM
from jupyter_to_job.domain.errors import Refused

from ..courier_scene import FAILED, NAME, ORIGIN, POD, Scene
from . import exchanges

FORBIDDEN = 'Kubernetes answered 403: things "a" is forbidden: '
NO_RIGHTS = 'cannot get resource "{}" in API group "" in the namespace "team"'


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_one_is_started_and_gone_when_it_has_delivered(scene: Scene) -> None:
    directory = scene.add()
    for _ in range(3):
        scene.look()
    (record,) = scene.cluster.records.values()
    assert record.courier_of == NAME
    assert scene.volumes()["volumes"][0]["persistentVolumeClaim"] == {"claimName": "home"}
    exchanges.deliver(directory)
    scene.look()
    assert not scene.cluster.records
    assert scene.held() is None


def test_a_dev_pod_has_its_minute(scene: Scene) -> None:
    scene.add(ago=30)
    scene.look()
    assert scene.cluster.made == []


def test_nothing_to_deliver(scene: Scene) -> None:
    scene.add("gone-aaaaaaaa")
    scene.exchange.remove("gone-aaaaaaaa")
    exchanges.deliver(scene.add("done-aaaaaaaa"))
    deleted = scene.add("deleted-aaaaaaaa")
    scene.exchange.write(deleted.name, layout.DELETE, {"time": exchanges.ENDED, "who": "me"})
    for name in ("gone-aaaaaaaa", "done-aaaaaaaa", "deleted-aaaaaaaa"):
        scene.look(name)
    assert scene.cluster.made == []


def test_a_token_is_good_for_one_job_while_its_courier_lives(scene: Scene) -> None:
    directory = scene.add()
    scene.look()
    job_of = scene.couriers.job_of
    assert job_of("team", "pod-1") is None
    scene.cluster.pod_records = {
        "pod-1": POD,
        "forged": replace(POD, uid="forged", job_uid="somebody's"),
        "elsewhere": replace(POD, uid="elsewhere", namespace="other"),
    }
    assert [job_of("team", uid) for uid in ("pod-1", "forged", "elsewhere")] == [NAME, None, None]
    exchanges.deliver(directory)
    scene.look()
    assert job_of("team", "pod-1") is None


def test_it_goes_where_the_claim_is(scene: Scene) -> None:
    scene.cluster.node = "node-7"
    scene.add()
    scene.look()
    assert "node-7" in str(scene.volumes()["affinity"])
    scene.cluster.claims["home"]["spec"]["accessModes"] = ["ReadWriteMany"]
    scene.add("shared-aaaaaaaa")
    scene.look("shared-aaaaaaaa")
    assert "affinity" not in scene.volumes()


def _no_user(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "security_context": {"fsGroup": 100}})


def _root(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "security_context": {"runAsUser": 0}})


def _claim_gone(scene: Scene) -> None:
    scene.add()
    del scene.cluster.claims["home"]


def _claim_replaced(scene: Scene) -> None:
    scene.add()
    scene.cluster.claims["home"]["metadata"]["uid"] = "claim-2"


def _quota(scene: Scene) -> None:
    scene.add()
    scene.cluster.error = Refused(f"{FORBIDDEN}exceeded quota: compute")


def _rights(scene: Scene) -> None:
    scene.add()
    scene.cluster.unseen = Refused(f'{FORBIDDEN}User "a" {NO_RIGHTS.format("claims")}')


def _rights_on_pods(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "mounts": []})
    scene.cluster.unseen = Refused(f'{FORBIDDEN}User "a" {NO_RIGHTS.format("pods")}')


@pytest.mark.parametrize(
    ("obstacle", "said"),
    [
        (_no_user, "names no runAsUser"),
        (_root, "runs as root"),
        (_claim_gone, "The volume claim home is gone."),
        (_claim_replaced, "is another one by now"),
        (_quota, "started: A quota of the namespace has no room now: compute. It is tried again"),
        (_rights, "The controller may not get claims in the namespace team. It is tried again"),
        (_rights_on_pods, "The controller may not get pods in the namespace team. It is tried"),
    ],
)
def test_what_keeps_one_from_starting_is_said(
    scene: Scene, obstacle: Callable[[Scene], None], said: str
) -> None:
    obstacle(scene)
    scene.look()
    held = scene.held()
    assert held is not None and said in held.message and not held.failed
    assert scene.changed == [NAME]
    assert scene.cluster.made == []
    scene.look()  # not at once again
    assert scene.changed == [NAME]


def test_a_failure_is_said_and_tried_again_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.add()
    scene.look()
    scene.cluster.pod_records["pod-1"] = FAILED
    scene.look()
    held = scene.held()
    assert held is not None and "The gateway is away." in held.message
    assert not scene.cluster.records
    scene.look()
    assert len(scene.cluster.made) == 1
    now, clock = time.time(), time.monotonic()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    monkeypatch.setattr(time, "monotonic", lambda: clock + 61)
    scene.look()
    assert len(scene.cluster.made) == 2


def test_why_it_has_no_pod_is_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.add()
    scene.look()
    scene.cluster.refusals["courier-1"] = (
        'Error creating: pods "c" is forbidden: violates PodSecurity "restricted:latest": no user'
    )
    clock = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock + 61)
    scene.look()
    held = scene.held()
    assert held is not None
    assert held.message == (
        "The courier's pod is refused: "
        "The namespace's Pod Security (restricted) refuses the pod: no user."
    )


def test_what_the_courier_said_itself_stands(scene: Scene) -> None:
    scene.add()
    scene.look()
    scene.exchange.write(NAME, layout.HELD, {"message": "Cannot write w/t.ipynb: no room."})
    scene.cluster.pod_records["pod-1"] = replace(POD, phase="Succeeded")
    scene.look()
    held = scene.held()
    assert held is not None and held.message == "Cannot write w/t.ipynb: no room."
    assert not scene.cluster.records


def test_without_a_claim_the_dev_pod_delivers_or_nobody(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "mounts": []})
    scene.cluster.dev_pod = {"metadata": {"uid": "dev-1"}}
    scene.look()
    assert scene.held() is None
    scene.cluster.dev_pod = {"metadata": {"uid": "dev-2"}}
    scene.look()
    held = scene.held()
    assert held is not None and held.failed and "no volume claim" in held.message
    assert scene.cluster.made == []


def test_after_a_restart_strangers_go_and_another_one_comes(scene: Scene) -> None:
    scene.add()
    scene.look()
    scene.restart()
    scene.look()
    assert len(scene.cluster.made) == 2
    assert scene.couriers.job_of("team", "pod-1") is None
    scene.sweep()
    assert list(scene.cluster.records) == ["courier-2"]


def test_one_that_cannot_be_deleted_does_not_stop_the_others(scene: Scene) -> None:
    for name in ("one-aaaaaaaa", "two-aaaaaaaa"):
        scene.add(name)
        scene.look(name)
    scene.restart()
    scene.cluster.stuck = {"courier-1"}
    scene.sweep()
    assert list(scene.cluster.records) == ["courier-1"]


def test_a_crowd_takes_turns(scene: Scene) -> None:
    names = [f"job{n}-aaaaaaaa" for n in range(MAX_COURIERS + 3)]
    for n, name in enumerate(names):
        scene.add(name, scene.add_claim(f"home-{n}", f"claim-{n}"))
        scene.look(name)
    assert len(scene.cluster.records) == MAX_COURIERS
    exchanges.deliver(scene.exchange.directory(names[0]))
    exchanges.deliver(scene.exchange.directory(names[MAX_COURIERS]))  # it waits no longer
    scene.work(names[0])
    assert scene.made() == [*names[:MAX_COURIERS], names[MAX_COURIERS + 1]]


def test_one_claim_does_not_hold_up_the_others(scene: Scene) -> None:
    """Its couriers may hang until their deadline: an NFS server is away."""
    mine = [f"mine{n}-aaaaaaaa" for n in range(MAX_COURIERS + 3)]
    for name in mine:
        scene.add(name)
        scene.look(name)
    assert scene.made() == mine[:MAX_OF_CLAIM]
    scene.add("other-aaaaaaaa", scene.add_claim("another", "claim-2"))
    scene.work("other-aaaaaaaa")
    assert scene.made() == [*mine[:MAX_OF_CLAIM], "other-aaaaaaaa"]
    exchanges.deliver(scene.exchange.directory(mine[0]))
    scene.work(mine[0])
    assert scene.made() == [*mine[:MAX_OF_CLAIM], "other-aaaaaaaa", mine[MAX_OF_CLAIM]]


def test_a_job_has_one_timer(scene: Scene) -> None:
    """However often it was looked at: each look would else be followed by looks for ever."""
    directory = scene.add(ago=0)

    async def look() -> int:
        for _ in range(5):
            await scene.couriers._take_next_step(NAME)
        timers = [t for t in scene.couriers._timers.values() if not t.cancelled()]
        exchanges.deliver(directory)
        await scene.couriers._take_next_step(NAME)
        assert all(timer.cancelled() for timer in timers)
        return len(timers)

    assert asyncio.run(look()) == 1
