"""Couriers with a pretend cluster: how one is started, what becomes of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout
from jupyter_to_job.controller.couriers.admission import MAX_COURIERS, MAX_OF_FOLDER
from jupyter_to_job.domain.errors import BadInput, Refused

from ..courier_scene import BAD_IMAGE, FAILED, NAME, ORIGIN, POD, WAITING, Scene
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


@pytest.mark.parametrize("ahead", [30, 86400])
def test_a_clock_that_was_set_back_postpones_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """The times of files are ahead then: of the outcome, and of what a dev pod said."""
    directory = scene.add(ago=-ahead)
    scene.exchange.write(NAME, layout.HELD, {"message": "Cannot write w/t.ipynb: no room."})
    later = time.time() + ahead
    os.utime(directory / layout.HELD, (later, later))
    now, clock = time.time(), time.monotonic()
    for seconds in (0, 61, 122):  # a dev pod has its minute, at most twice
        monkeypatch.setattr(time, "time", lambda then=now + seconds: then)
        monkeypatch.setattr(time, "monotonic", lambda then=clock + seconds: then)
        scene.look()
        if scene.cluster.made:
            break
    assert scene.made() == [NAME]


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


def _expression(scene: Scene) -> None:
    scene.add(origin={**ORIGIN, "mounts": [{**ORIGIN["mounts"][0], "sub_path": None}]})


def _wrong_patch(scene: Scene) -> None:
    scene.add()
    scene.patch = _refuse


def _refuse() -> Any:
    raise BadInput("The pod patch /etc/patch.yaml cannot be read: No such file or directory.")


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
        (_expression, "The dev pod mounts /w with a subPathExpr"),
        (_wrong_patch, "No courier can be started: The pod patch /etc/patch.yaml cannot be read"),
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


def _claim_gone(scene: Scene) -> None:
    del scene.cluster.claims["home"]


def _claim_replaced(scene: Scene) -> None:
    scene.cluster.claims["home"]["metadata"]["uid"] = "claim-2"


@pytest.mark.parametrize("origin", [ORIGIN, {**ORIGIN, "security_context": {}}])
@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (_claim_gone, "The volume claim home is gone."),
        (_claim_replaced, "The volume claim home is another one by now."),
    ],
)
def test_a_claim_that_is_gone_is_the_end(
    scene: Scene, loss: Callable[[Scene], None], said: str, origin: Any
) -> None:
    """Its result is kept as long as a delivered one, and its message says so."""
    scene.add(origin=origin)
    loss(scene)
    scene.look()
    held = scene.held()
    assert held is not None and held.failed and said in held.message
    assert "until its retention is over" in held.message
    assert scene.cluster.made == []


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
        "The courier did not start within 1 min: its pod is refused. "
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


def test_one_folder_does_not_hold_up_the_others(scene: Scene) -> None:
    """Its couriers may hang until their deadline. All users may share one claim."""
    shared = {"spec": {"accessModes": ["ReadWriteMany"]}, "metadata": {"uid": "claim-1"}}
    scene.cluster.claims["home"] = shared
    mine = [f"mine{n}-aaaaaaaa" for n in range(MAX_COURIERS + 3)]
    for name in mine:
        scene.add(name)
        scene.look(name)
    assert scene.made() == mine[:MAX_OF_FOLDER]
    mount = {**ORIGIN["mounts"][0], "sub_path": "users/bob"}
    scene.add("other-aaaaaaaa", {**ORIGIN, "mounts": [mount]})
    scene.work("other-aaaaaaaa")
    assert scene.made() == [*mine[:MAX_OF_FOLDER], "other-aaaaaaaa"]
    exchanges.deliver(scene.exchange.directory(mine[0]))
    scene.work(mine[0])
    assert scene.made() == [*mine[:MAX_OF_FOLDER], "other-aaaaaaaa", mine[MAX_OF_FOLDER]]


def test_a_claim_of_one_node_has_one_courier(scene: Scene) -> None:
    """Before one of two has a node, nobody knows where the other one has to go."""
    for name in ("one-aaaaaaaa", "two-aaaaaaaa"):
        scene.add(name)
        scene.look(name)
    assert scene.made() == ["one-aaaaaaaa"]
    exchanges.deliver(scene.exchange.directory("one-aaaaaaaa"))
    scene.work("one-aaaaaaaa")
    assert scene.made() == ["one-aaaaaaaa", "two-aaaaaaaa"]


def test_a_place_that_is_not_needed_goes_to_the_next(scene: Scene) -> None:
    """The called one cannot start after all, or is delivered meanwhile."""
    names = [f"job{n}-aaaaaaaa" for n in range(4)]
    for name in names:
        scene.add(name)
        scene.look(name)
    exchanges.deliver(scene.exchange.directory(names[0]))
    exchanges.deliver(scene.exchange.directory(names[1]))
    scene.exchange.remove(names[2])
    scene.work(names[0])
    assert scene.made() == [names[0], names[3]]


def test_a_wait_for_a_node_or_an_image_is_said_and_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is started for it pulls our image, too: that takes over a minute."""
    directory = scene.add()
    scene.look()
    scene.cluster.pod_records["pod-1"] = WAITING
    clock = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock + 61)
    scene.look()
    held = scene.held()
    assert held is not None and "The courier waits for its start" in held.message
    assert list(scene.cluster.records) == ["courier-1"]
    scene.changed.clear()
    scene.look()
    assert scene.changed == []  # it is said once
    scene.cluster.pod_records["pod-1"] = FAILED
    scene.look()
    held = scene.held()
    assert held is not None and "The gateway is away." in held.message
    exchanges.deliver(directory)


def test_an_error_of_its_pod_counts_from_its_first_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.add()
    scene.look()
    scene.cluster.pod_records["pod-1"] = WAITING
    clock = time.monotonic()
    for seconds, is_there in ((300, True), (301, True), (330, True), (362, False)):
        monkeypatch.setattr(time, "monotonic", lambda now=clock + seconds: now)
        pod = WAITING if seconds == 300 else BAD_IMAGE
        scene.cluster.pod_records["pod-1"] = pod
        scene.look()
        assert bool(scene.cluster.records) == is_there
    held = scene.held()
    assert held is not None and "did not start within 1 min: Back-off" in held.message


def test_a_job_has_one_timer(scene: Scene) -> None:
    """However often it was looked at: each look would else be followed by looks for ever."""
    directory = scene.add(ago=0)

    async def look() -> int:
        for _ in range(5):
            await scene.couriers._take_next_step(NAME)
        timers = [t for t in scene.couriers._queue._timers.values() if not t.cancelled()]
        exchanges.deliver(directory)
        await scene.couriers._take_next_step(NAME)
        assert all(timer.cancelled() for timer in timers)
        return len(timers)

    assert asyncio.run(look()) == 1
