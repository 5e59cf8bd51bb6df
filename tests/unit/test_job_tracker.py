"""What becomes of jobs is counted once, and told on their Jobs without a word of the notebook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import times
from job_runner.protocol.outcome import CellCounts, Outcome
from jupyter_to_job.controller.job_tracker import OF_CLUSTER, JobTracker, TrackedJob, units_of
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.domain.job import DeliveryState, State
from jupyter_to_job.exchange.records import ClusterJob

from .exchanges import request

NAME = "train-abcdefgh"
SUBMITTED = 1_790_000_000.0
ON_GPUS = {
    "device": "t4",
    "flavor_spec": {"gpus": 2},
    "device_spec": {"resource": "nvidia.com/gpu"},
}
REQUEST = request(NAME, submitted=times.from_unix(SUBMITTED), **ON_GPUS)
QUEUED = TrackedJob(
    REQUEST,
    ClusterJob("team", NAME, "u-1"),
    State.QUEUED,
    None,
    DeliveryState.PENDING,
    None,
    (),
)
RUNNING = replace(QUEUED, state=State.RUNNING)


def outcome(begun: float, ended: float, **changes: Any) -> Outcome:
    """Return the outcome of a run between two seconds after the submission."""
    values: dict[str, Any] = {
        "state": "succeeded",
        "reason": None,
        "message": None,
        "exit_code": 0,
        "cells": CellCounts(done=1, total=1),
        "started": times.from_unix(SUBMITTED + begun),
        "finished": times.from_unix(SUBMITTED + ended),
        "usage": {"gpu_utilisation_mean": 0.5},
        "result_sha256": "0" * 64,
    }
    return Outcome(**{**values, **changes})


def ended(at: float = 110.0, **changes: Any) -> TrackedJob:
    """Return a job that ran from the tenth second on."""
    values: dict[str, Any] = {
        "state": State.SUCCEEDED,
        "ended_at": SUBMITTED + at,
        "outcomes": (outcome(10, at),),
    }
    return replace(QUEUED, **{**values, **changes})


class Scene:
    """A tracker, the time, and what it told."""

    def __init__(self) -> None:
        self.now = SUBMITTED
        self.metrics = Metrics()
        self.told: list[tuple[str, ...]] = []
        self.tracker = JobTracker(self.metrics, self._tell, lambda: self.now)

    def _tell(self, job: ClusterJob, action: str, reason: str, note: str) -> None:
        assert job.uid == "u-1"
        self.told.append((action, reason, note))

    def see(self, seconds: float, seen: TrackedJob) -> None:
        self.now = SUBMITTED + seconds
        self.tracker.see(NAME, seen)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"jupyter_to_job_{name}", labels)

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.told]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_life(scene: Scene) -> None:
    scene.see(0, QUEUED)
    assert scene.value("jobs", state="queued", reason="") == 1
    scene.now = SUBMITTED + 8
    assert scene.value("oldest_waiting_job_seconds") == 8
    scene.see(9, RUNNING)
    assert scene.value("jobs", state="queued", reason="") == 0
    assert scene.value("jobs", state="running", reason="") == 1
    assert scene.value("oldest_waiting_job_seconds") == 0
    assert scene.value("job_waiting_seconds_sum", device="t4") == 9
    scene.see(111, ended())
    labels = {"state": "succeeded", "reason": "", "flavor": "small", "device": "t4"}
    assert scene.value("jobs_ended_total", **labels) == 1
    assert scene.value("job_running_seconds_sum", device="t4") == 100
    assert scene.value("gpu_seconds_given_total", device="t4") == 200
    assert scene.value("gpu_seconds_used_total", device="t4") == 100
    scene.now = SUBMITTED + 170
    assert scene.value("oldest_pending_delivery_seconds") == 60
    scene.see(171, ended(delivery=DeliveryState.DELIVERED))
    assert scene.value("job_delivery_seconds_sum") == 61
    assert scene.value("oldest_pending_delivery_seconds") == 0
    assert scene.value("deliveries", state="delivered") == 1
    assert scene.told == [("Deliver", "Delivered", "The result is in the workspace.")]
    scene.tracker.forget(NAME)
    assert scene.value("jobs", state="succeeded", reason="") == 0
    assert scene.value("deliveries", state="delivered") == 0


def test_counters_of_an_alert_begin_at_nought(scene: Scene) -> None:
    scene.see(0, QUEUED)
    labels = {"state": "failed", "reason": "NodeLost", "flavor": "small", "device": "t4"}
    assert scene.value("jobs_ended_total", **labels) == 0
    rules = (Path(__file__).parents[2] / "k8s" / "monitoring" / "rules.yaml").read_text()
    assert f'reason=~"{"|".join(OF_CLUSTER)}"' in rules


def test_a_job_that_its_own_group_holds_back_does_not_wait_for_the_cluster(scene: Scene) -> None:
    scene.see(0, replace(QUEUED, reason="GroupLimit"))
    scene.now = SUBMITTED + 8
    assert scene.value("oldest_waiting_job_seconds") == 0


def test_a_stopped_run_whose_next_pod_cannot_come(scene: Scene) -> None:
    scene.see(0, QUEUED)
    scene.see(9, RUNNING)
    stopped = outcome(10, 20_000, state="failed", reason="Terminated")
    held = replace(QUEUED, outcomes=(stopped,))
    scene.see(20_001, held)
    scene.now = SUBMITTED + 20_010
    assert scene.value("oldest_waiting_job_seconds") == 10
    scene.see(20_011, replace(held, reason="QuotaExceeded"))
    scene.see(20_012, replace(held, state=State.STARTING))
    scene.see(20_013, replace(held, state=State.RUNNING))
    assert scene.value("job_waiting_seconds_count", device="t4") == 1


def test_looking_again_changes_nothing(scene: Scene) -> None:
    for _ in range(3):
        scene.see(0, QUEUED)
        scene.see(9, RUNNING)
    for _ in range(3):
        scene.see(111, ended())
    assert scene.value("jobs", state="succeeded", reason="") == 1
    assert scene.value("job_running_seconds_count", device="t4") == 1
    assert scene.told == []


def test_a_job_that_had_ended_before_is_no_news(scene: Scene) -> None:
    scene.see(200, ended(state=State.FAILED, reason="CellError"))
    assert scene.value("jobs", state="failed", reason="CellError") == 1
    assert scene.value("job_running_seconds_count", device="t4") is None
    assert scene.told == []


def test_a_run_between_two_looks(scene: Scene) -> None:
    scene.see(0, QUEUED)
    scene.see(120, ended())
    assert scene.value("job_waiting_seconds_sum", device="t4") == 10
    assert scene.value("job_running_seconds_sum", device="t4") == 100


def test_a_job_that_never_ran_had_no_device(scene: Scene) -> None:
    scene.see(0, QUEUED)
    nothing = outcome(0, 60, started=None, state="failed", result_sha256=None)
    scene.see(
        60,
        ended(
            60,
            state=State.FAILED,
            reason="ImageUnavailable",
            outcomes=(nothing,),
            delivery=DeliveryState.NONE,
        ),
    )
    assert scene.value("job_waiting_seconds_count", device="t4") is None
    assert scene.value("gpu_seconds_given_total", device="t4") is None
    assert scene.reasons == ["JobFailed"]


def test_a_failure_is_told_without_the_words_of_the_notebook(scene: Scene) -> None:
    scene.see(0, RUNNING)
    failed = outcome(10, 20, state="failed", reason="CellError", message="KeyError: 'password'")
    scene.see(21, ended(20, state=State.FAILED, reason="CellError", outcomes=(failed,)))
    ((action, reason, note),) = scene.told
    assert (action, reason) == ("Fail", "JobFailed")
    assert "CellError" in note
    assert "password" not in note


def test_cancelled_held_and_given_up(scene: Scene) -> None:
    scene.see(0, RUNNING)
    scene.see(20, ended(20, state=State.CANCELLED, reason=None))
    scene.see(30, ended(20, state=State.CANCELLED, delivery=DeliveryState.HELD))
    scene.see(40, ended(20, state=State.CANCELLED, delivery=DeliveryState.FAILED))
    assert scene.reasons == ["Cancelled", "DeliveryHeld", "DeliveryFailed"]
    scene.tracker.give_up(
        QUEUED.cluster_job, "WaitedTooLong", "Unschedulable: No node took the pod within 1 d."
    )
    assert scene.told[-1][:2] == ("Fail", "WaitedTooLong")
    scene.tracker.give_up(None, "WaitedTooLong", "There was no Job.")
    assert len(scene.told) == 4


@pytest.mark.parametrize(
    ("changes", "running", "used"),
    [
        ({"finished": times.from_unix(SUBMITTED + 1e9)}, 120, 60 * 2),  # longer than the job
        ({"finished": times.from_unix(SUBMITTED - 1e6)}, 0, 0),
        ({"usage": {"gpu_utilisation_mean": 1e300}}, 100, 200),
        ({"usage": {"gpu_utilisation_mean": float("nan")}}, 100, 0),
        ({"usage": {"gpu_utilisation_mean": "all"}}, 100, 0),
        ({"usage": {"gpu_utilisation_mean": -1}}, 100, 0),
        ({"usage": {"gpu_utilisation_mean": True}}, 100, 0),
        ({"usage": {}}, 100, 0),
    ],
)
def test_a_pod_may_say_anything(
    scene: Scene, changes: dict[str, Any], running: float, used: float
) -> None:
    scene.see(0, RUNNING)
    scene.see(120, ended(outcomes=(outcome(10, 110, **changes),)))
    assert scene.value("job_running_seconds_sum", device="t4") == running
    assert scene.value("gpu_seconds_used_total", device="t4") == used


def test_reasons_that_are_not_ours_are_one(scene: Scene) -> None:
    scene.see(0, RUNNING)
    scene.see(20, ended(20, state=State.FAILED, reason="Invented" * 1000))
    assert scene.value("jobs", state="failed", reason="Other") == 1


def test_directories_that_somebody_removed_are_no_jobs(scene: Scene) -> None:
    scene.see(0, QUEUED)
    scene.tracker.keep([NAME, "other-abcdefgh"])
    assert scene.value("jobs", state="queued", reason="") == 1
    scene.tracker.keep([])
    assert scene.value("jobs", state="queued", reason="") == 0


@pytest.mark.parametrize(
    ("flavor", "device", "units"),
    [
        ({"gpus": 2}, {"resource": "nvidia.com/gpu"}, 2),
        ({}, {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "5"}}, 1),
        ({"gpus": 2}, {}, 0),
    ],
)
def test_units_of_a_device(flavor: dict[str, Any], device: dict[str, Any], units: int) -> None:
    assert units_of(request(NAME, flavor_spec=flavor, device_spec=device)) == units
