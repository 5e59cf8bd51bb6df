"""When a courier is due, and what becomes of one: pure functions of what was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_to_job.backends.kubernetes import ContainerEnd
from jupyter_to_job.backends.kubernetes.records import job_record, pod_record
from jupyter_to_job.controller.couriers.due import (
    MAX_BACKOFF,
    CourierObservation,
    DeliveryObservation,
    EndCourier,
    LookAgain,
    StartCourier,
    TellWait,
    backoff,
    next_step,
)

from ..courier_scene import BAD_IMAGE, FAILED, POD, UNSCHEDULED, WAITING
from ..golden_couriers import manifests

MANIFESTS = dict(manifests())
WITHOUT_REGISTRY = replace(
    WAITING, waiting="ImageInspectError", waiting_message="short name mode is enforcing"
)
NO_NODE = "The courier waits for its start: no node takes it: 0/2 nodes are available"
IN_QUEUE = "it waits in the queue 'default' of Kueue"
HELD_BACK = CourierObservation(60, is_known=True, is_suspended=True)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (DeliveryObservation(0), LookAgain(60)),
        (DeliveryObservation(59), LookAgain(1)),
        (DeliveryObservation(60), StartCourier()),
        (DeliveryObservation(100, failed=10), LookAgain(50)),  # of a dev pod
        (DeliveryObservation(100, failed=60), StartCourier()),
        (DeliveryObservation(900, failed=100, failures=2), LookAgain(20)),
        (DeliveryObservation(900, failed=120, failures=2), StartCourier()),
    ],
)
def test_when_one_is_due(seen: DeliveryObservation, step: object) -> None:
    assert next_step(seen, 60, 600) == step


@pytest.mark.parametrize(
    ("courier", "step"),
    [
        (CourierObservation(1), LookAgain(59)),  # no watch has told of it yet
        (CourierObservation(11), EndCourier("The courier ended without a word.")),
        (CourierObservation(11, is_known=True), LookAgain(49)),
        (
            CourierObservation(60, is_known=True),
            EndCourier("The courier did not start within 1 min: its pod was not created"),
        ),
        (
            replace(HELD_BACK, queue="default"),
            TellWait(f"The courier waits for its start: {IN_QUEUE}", 540),
        ),
        (
            replace(HELD_BACK, age=600, queue="default"),
            EndCourier(f"The courier did not start within 10 min: {IN_QUEUE}"),
        ),
        (
            HELD_BACK,
            EndCourier(
                "The courier did not start within 1 min: its Kubernetes Job is suspended, because "
                "Kueue or another controller manages Jobs without a queue here"
            ),
        ),
        (CourierObservation(59, is_known=True, pod=UNSCHEDULED), LookAgain(1)),
        (CourierObservation(60, is_known=True, pod=UNSCHEDULED), TellWait(NO_NODE, 540)),
        (
            CourierObservation(70, is_known=True, pod=UNSCHEDULED, wait_message=NO_NODE),
            LookAgain(530),
        ),
        (
            CourierObservation(600, is_known=True, pod=UNSCHEDULED, wait_message=NO_NODE),
            EndCourier(
                "The courier did not start within 10 min: no node takes it: 0/2 nodes are available"
            ),
        ),
        (  # a new node would not have its volume
            CourierObservation(60, is_known=True, pod=UNSCHEDULED, is_bound=True, error_age=60),
            EndCourier(
                "The courier did not start within 1 min: no node takes it: 0/2 nodes are available"
            ),
        ),
        (
            CourierObservation(60, is_known=True, pod=WAITING),
            TellWait(
                "The courier waits for its start: "
                "its volume is not mounted yet, or its image not pulled",
                540,
            ),
        ),
        (CourierObservation(30, is_known=True, pod=BAD_IMAGE, error_age=10), LookAgain(30)),
        (
            CourierObservation(80, is_known=True, pod=BAD_IMAGE, error_age=60),
            EndCourier("The courier did not start within 1 min: Back-off pulling a:1"),
        ),
        (
            CourierObservation(80, is_known=True, pod=WITHOUT_REGISTRY, error_age=60),
            EndCourier("The courier did not start within 1 min: short name mode is enforcing"),
        ),
        (CourierObservation(90, is_known=True, pod=POD), LookAgain(2310)),
        (
            CourierObservation(90, is_known=True, pod=FAILED),
            EndCourier("The courier could not deliver: The gateway is away."),
        ),
        (CourierObservation(90, is_known=True, pod=FAILED, has_reported=True), EndCourier("")),
        (CourierObservation(90, is_over=True, is_known=True, has_reported=True), EndCourier("")),
    ],
)
def test_what_becomes_of_one(courier: CourierObservation, step: object) -> None:
    assert next_step(DeliveryObservation(1000, courier=courier), 60, 600) == step


def test_ever_later() -> None:
    waits = [backoff(failures, 60) for failures in range(1, 12)]
    assert waits[:4] == [60, 120, 240, 480]
    assert waits[-1] == MAX_BACKOFF
    assert backoff(1, 0) == 5


def test_records_of_couriers() -> None:
    manifest = MANIFESTS["shared.yaml"]
    document = {**manifest, "metadata": {**manifest["metadata"], "uid": "courier-1"}}
    assert job_record(document).courier_of == "train-abcdefgh"
    terminated = {"exitCode": 1, "reason": "Error", "message": "The gateway is away."}
    pod = {
        "metadata": {**document["metadata"], "name": "train-abcdefgh-c1a2b-xyzab"},
        "spec": {**manifest["spec"]["template"]["spec"], "nodeName": "node-1"},
        "status": {
            "phase": "Failed",
            "containerStatuses": [{"name": "courier", "state": {"terminated": terminated}}],
        },
    }
    record = pod_record(pod)
    assert (record.job, record.begun) == ("train-abcdefgh", True)
    assert record.ended == ContainerEnd(1, "Error", "The gateway is away.")
