"""The Job's JSON: the field names of the contract, there and back."""

from __future__ import annotations

import json

from job_runner.protocol.metrics import Metric
from job_runner.protocol.progress import Progress
from jupyter_to_job.domain.job import Asked, ClusterEvent, Delivery, DeliveryState, Job, State
from jupyter_to_job.domain.notification import HookNotification

FIELDS = {
    "notebook", "owner", "flavor", "device", "parameters", "inputs", "isolated", "output",
    "max_runtime", "priority", "backend", "name", "state", "cancel_requested", "reason", "message",
    "position", "progress", "delivery", "usage", "submitted", "started", "finished", "journal",
    "mounts", "left_behind", "events", "asked", "group", "rerun_of", "metrics", "notifications",
    "wait",
}  # fmt: skip

JOB = Job(
    name="train-abcd2345",
    owner="me",
    notebook="dir/train.ipynb",
    flavor="small",
    device="cpu",
    parameters={"epochs": 5},
    inputs=("data.csv",),
    isolated=True,
    output=None,
    max_runtime=60,
    priority=1,
    backend="local",
    state=State.FAILED,
    reason="CellError",
    message="Cell 1 raised.",
    progress=Progress(1, 2, 1),
    delivery=Delivery(DeliveryState.DELIVERED, "dir/train-abcd2345.ipynb"),
    usage={"memory_peak": 1},
    submitted="2026-11-21T09:30:00.000Z",
    journal=12,
    events=(ClusterEvent("2026-11-21T09:30:00.000Z", "Pulled", "Container image is there"),),
    asked=Asked(max_runtime=90, isolated=True, inputs=("*.csv",), name="Train"),
    group="night",
    rerun_of="train-aaaaaaaa",
    metrics={"accuracy": Metric(0.93, None, 2), "curve": Metric(None, "image/png", 3)},
    notifications=(HookNotification("ops", "failed", "given_up", 12, "2026-11-21T09:31:00.000Z"),),
)


def test_fields() -> None:
    document = JOB.to_json()
    assert set(document) == FIELDS
    assert set(document["progress"]) == {"cells_done", "cells_total", "current_cell", "cells"}
    assert set(document["delivery"]) == {"state", "path", "message"}
    assert document["state"] == "failed"
    assert document["inputs"] == ["data.csv"]
    assert document["asked"]["inputs"] == ["*.csv"]


def test_there_and_back() -> None:
    crossed = json.loads(json.dumps(JOB.to_json()))
    assert Job.from_json(crossed) == JOB
    newer = {"field_of_a_newer_version": 1}
    parts = {name: {**crossed[name], **newer} for name in ("progress", "delivery", "asked")}
    assert Job.from_json({**crossed, **parts, **newer}) == JOB


def test_when_a_wait_returns() -> None:
    assert JOB.decided
    pending = {**JOB.to_json(), "delivery": {"state": "pending", "path": None, "message": None}}
    assert not Job.from_json(pending).decided
    running = {**JOB.to_json(), "state": "running"}
    assert not Job.from_json(running).decided
