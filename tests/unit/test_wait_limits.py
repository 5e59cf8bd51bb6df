"""A pod that cannot start is ended in time, with what kept it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_to_job.backends.kubernetes import PodRecord, placement_of
from jupyter_to_job.controller.reconciling.wait_limits import WaitLimits, limit_of
from jupyter_to_job.domain.errors import BadInput

from .test_next_step import PENDING, RUNNING
from .test_pod_failures import pod as observed_pod

NODE = replace(RUNNING, phase="Pending", begun=False)
PULLING = replace(NODE, waiting="ImagePullBackOff", waiting_message="not found")
CREATING = replace(NODE, waiting="CreateContainerError", waiting_message="no such device")
UNSCHEDULABLE = replace(PENDING, waiting="Unschedulable", waiting_message="0/2 nodes")
LIMITS = WaitLimits(image=100, container=50, agent=200, unschedulable=1000)


@pytest.mark.parametrize(
    ("pod", "limit", "reason", "said"),
    [
        (PULLING, 100, "ImageUnavailable", "within 1 min 40 s: not found"),
        (CREATING, 50, "BackendError", "no such device"),
        (NODE, 200, "BackendError", "agent did not begin"),
        (UNSCHEDULABLE, 1000, "Unschedulable", "0/2 nodes"),
        (PENDING, 1000, "Unschedulable", "No node took"),
    ],
)
def test_its_limit(pod: PodRecord, limit: int, reason: str, said: str) -> None:
    found = limit_of(pod, LIMITS, is_claimed=False)
    assert found is not None and found.seconds == limit
    assert found.ending[0] == reason and said in found.ending[1]
    assert limit_of(pod, WaitLimits(0, 0, 0, 0), is_claimed=False) is None


def test_a_large_image_may_take_long() -> None:
    """Its agent has claimed the attempt, and the notebook's image is being pulled."""
    assert limit_of(NODE, LIMITS, is_claimed=True) is None
    assert limit_of(PULLING, LIMITS, is_claimed=True) is not None


@pytest.mark.parametrize("is_claimed", [False, True])
@pytest.mark.parametrize(
    ("waiting", "seconds", "reason"),
    [
        ("ImageInspectError", 100, "ImageUnavailable"),
        ("RegistryUnavailable", 100, "ImageUnavailable"),
        ("SignatureValidationFailed", 100, "ImageUnavailable"),
        ("CreateContainerConfigError", 50, "BackendError"),
        ("PostStartHookError", 50, "BackendError"),
        ("ErrorOfTomorrow", 50, "BackendError"),
    ],
)
def test_what_its_node_says(waiting: str, seconds: int, reason: str, *, is_claimed: bool) -> None:
    """None of these is a pull that goes on: of that a node says ContainerCreating."""
    state = {"waiting": {"reason": waiting, "message": "why it waits"}}
    pod = observed_pod(
        phase="Pending",
        conditions=[{"type": "PodScheduled", "status": "True"}],
        containerStatuses=[{"name": "notebook", "state": state}],
    )
    placement = placement_of(pod)
    assert (placement.starting, placement.reason) == (True, reason)
    assert placement.message == "why it waits"
    limit = limit_of(pod, LIMITS, is_claimed=is_claimed)
    assert limit is not None and limit.seconds == seconds
    assert limit.ending[0] == reason and "why it waits" in limit.ending[1]


@pytest.mark.parametrize("is_claimed", [False, True])
@pytest.mark.parametrize("have_begun", [False, True])
def test_a_sidecar_that_crashes(*, have_begun: bool, is_claimed: bool) -> None:
    """Behind one that never begins no container starts; beside one that did the job goes on."""
    crashing = {"reason": "CrashLoopBackOff", "message": "back-off restarting log-shipper"}
    initialized = {"type": "Initialized", "status": "True" if have_begun else "False"}
    pod = observed_pod(
        phase="Pending",
        conditions=[{"type": "PodScheduled", "status": "True"}, initialized],
        initContainerStatuses=[{"name": "log-shipper", "state": {"waiting": crashing}}],
        containerStatuses=[
            {"name": "notebook", "state": {"waiting": {"reason": "PodInitializing"}}}
        ],
    )
    limit = limit_of(pod, LIMITS, is_claimed=is_claimed)
    if have_begun:
        assert placement_of(pod).reason is None
        assert limit is None if is_claimed else limit and limit.seconds == LIMITS.agent
    else:
        assert placement_of(pod).message == crashing["message"]
        assert limit is not None and limit.seconds == LIMITS.container


def test_a_pod_with_a_scheduling_gate_shows_no_error() -> None:
    gated = replace(PENDING, waiting="SchedulingGated", waiting_message="a gate is left")
    assert placement_of(gated).reason is None
    limit = limit_of(gated, LIMITS, is_claimed=False)
    assert limit is not None and limit.ending[0] == "Unschedulable"


def test_one_that_runs_waits_no_more() -> None:
    for pod in (RUNNING, replace(NODE, phase="Failed"), replace(PULLING, deleting=True)):
        assert limit_of(pod, LIMITS, is_claimed=False) is None


def test_the_setting() -> None:
    assert WaitLimits.parse("") == WaitLimits()
    assert WaitLimits.parse("image=2m, unschedulable=0") == WaitLimits(image=120, unschedulable=0)
    for text in ("image", "images=2m", "image=-1", "image=soon"):
        with pytest.raises(BadInput):
            WaitLimits.parse(text)
