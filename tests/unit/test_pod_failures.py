"""From a dead pod, as the API shows it, to a reason and a sentence; and from a waiting one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_to_job.backends.kubernetes import ContainerEnd
from jupyter_to_job.backends.kubernetes.backend import placement_of
from jupyter_to_job.backends.kubernetes.records import PodRecord, pod_record
from jupyter_to_job.controller.reconciling.pod_failures import disruption_of, failure_of


def pod(spec: dict[str, Any] = {}, **status: Any) -> PodRecord:  # noqa: B006 - never changed
    metadata = {
        "namespace": "team",
        "name": "p",
        "uid": "u",
        "labels": {"jupyter-to-job.io/job": "train-abcdefgh"},
        "ownerReferences": [{"kind": "Job", "uid": "job-uid", "controller": True}],
    }
    return pod_record({"metadata": metadata, "spec": spec, "status": status})


def ended_pod(code: int, reason: str = "Error", message: str = "") -> PodRecord:
    end = {"exitCode": code, "reason": reason, "message": message}
    return pod(
        phase="Failed", containerStatuses=[{"name": "notebook", "state": {"terminated": end}}]
    )


def test_containers_that_others_put_beside_ours() -> None:
    running: dict[str, object] = {"running": {}}
    ours = {"name": "notebook", "state": running}
    agent = [{"name": "agent", "state": running}]
    proxy = {"name": "istio-proxy", "state": running}
    assert not pod(initContainerStatuses=agent, containerStatuses=[ours]).has_foreign_containers
    assert pod(initContainerStatuses=agent, containerStatuses=[ours, proxy]).has_foreign_containers
    proxy["state"] = {"terminated": {"exitCode": 0}}
    assert not pod(
        initContainerStatuses=agent, containerStatuses=[ours, proxy]
    ).has_foreign_containers


def disrupted(reason: str) -> PodRecord:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "M."}
    end = {"exitCode": 143, "reason": "Error", "message": ""}
    return pod(
        phase="Failed",
        conditions=[condition],
        containerStatuses=[{"name": "notebook", "state": {"terminated": end}}],
    )


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (None, "Lost"),
        (pod(phase="Failed", reason="Evicted", message="low on memory"), "Evicted"),
        (pod(phase="Failed", reason="DeadlineExceeded"), "DeadlineExceeded"),
        (pod(phase="Failed", reason="UnexpectedAdmissionError", message="no GPU"), "BackendError"),
        (pod(phase="Failed"), "Lost"),
        (ended_pod(137, "OOMKilled"), "OutOfMemory"),
        (ended_pod(137), "Lost"),
        (ended_pod(127), "RunnerMissing"),
        (ended_pod(126), "RunnerMissing"),
        (ended_pod(128, "StartError", "exec: no such file"), "RunnerMissing"),
        *[
            (ended_pod(128, "StartError", f"runc create failed: {words}: unknown"), "RunnerMissing")
            for words in (
                'exec: "python3": executable file not found in $PATH',
                'exec: "/bin/sh": stat /bin/sh: no such file or directory',
                "executable file `python3` not found in $PATH: No such file or directory",
            )
        ],
        (ended_pod(128, "StartError", "container init was OOM-killed."), "BackendError"),
        (ended_pod(128), "BackendError"),
        (ended_pod(1, "Error", "/usr/bin/python3: No module named job_runner"), "RunnerMissing"),
        (ended_pod(2, "Error", "__main__.py: error: unrecognized arguments: --x"), "RunnerMissing"),
        (ended_pod(2, "Error", "No such directory."), "BackendError"),
        (ended_pod(1, "Error", '{"v": 1, "reason": "CellError", "message": "It."}'), "CellError"),
        (ended_pod(143, "Error", '{"v": 1, "reason": "Terminated", "message": "T."}'), "Lost"),
        (ended_pod(0, "Completed", '{"reason": 1, "message": []}'), "Lost"),
        (ended_pod(0, "Completed", "[" * 4096), "Lost"),
        (disrupted("EvictionByEvictionAPI"), "Evicted"),
        (disrupted("TerminationByKubelet"), "Evicted"),
        (disrupted("PreemptionByScheduler"), "Preempted"),
        (disrupted("DeletionByTaintManager"), "NodeLost"),
        (disrupted("DeletionByPodGC"), "NodeLost"),
        (ended_pod(74), "BackendError"),
    ],
)
def test_reason(seen: PodRecord | None, reason: str) -> None:
    found, message = failure_of(seen)
    assert found == reason
    assert message.endswith(".") or message.endswith(("memory", "GPU"))


@pytest.mark.parametrize(
    "words",
    [
        "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. ",
        'Container notebook exceeded its local ephemeral storage limit "10Gi". ',
        'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". ',
    ],
)
def test_a_pod_that_is_evicted_for_its_own_use_of_disk(words: str) -> None:
    kept = "It used more disk than it was given; what it had printed is kept."
    end = ("DiskFull", f"{kept} {words}Choose a larger flavor, or write to a volume.")
    evicted = pod(phase="Failed", reason="Evicted", message=words)
    assert (disruption_of(evicted), failure_of(evicted)) == (end, end)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    short = pod(phase="Failed", reason="Evicted", message=words, conditions=[condition])
    assert failure_of(short)[0] == "Evicted"


@pytest.mark.parametrize(
    "cause",
    [
        "libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown",
        "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
        'exec: "nvidia-container-runtime": executable file not found in $PATH: unknown',
    ],
)
def test_a_node_without_its_gpu_driver_is_no_image_without_a_runner(cause: str) -> None:
    assert failure_of(ended_pod(128, "StartError", cause)) == (
        "BackendError",
        f"The node could not start the container: {cause}. "
        "Submit again, or tell your administrator.",
    )


def pod_with_init_containers(code: int, reason: str, message: str = "", **status: Any) -> PodRecord:
    """Return a pod in which an init container of the pod patch ended between agent and sidecar."""
    sidecars = [{"name": name, "restartPolicy": "Always"} for name in ("agent", "proxy")]
    killed = {"terminated": {"exitCode": 137, "reason": "Error"}}
    ended = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    waiting = {"waiting": {"reason": "PodInitializing"}}
    statuses = [
        {"name": name, "state": state}
        for name, state in (("agent", killed), ("proxy", killed), ("fetch-data", ended))
    ]
    return pod(
        {"initContainers": [*sidecars, {"name": "fetch-data"}]},
        phase="Failed",
        initContainerStatuses=statuses,
        containerStatuses=[{"name": "notebook", "state": waiting}],
        **status,
    )


def test_an_init_container_that_fails_is_named() -> None:
    text = "The init container fetch-data, which the pod patch or a webhook adds, failed"
    assert failure_of(pod_with_init_containers(137, "OOMKilled")) == (
        "BackendError",
        f"{text} (OOMKilled, exit code 137). Tell your administrator.",
    )
    assert failure_of(pod_with_init_containers(1, "Error", "No bucket.")) == (
        "BackendError",
        f"{text} (Error, exit code 1). Tell your administrator. No bucket.",
    )


def test_an_init_container_is_not_blamed_for_what_ended_its_pod() -> None:
    """Somebody deleted the pod, its node was drained, or the run ended after the init container."""
    assert failure_of(pod_with_init_containers(143, "Error")) == (
        "Lost",
        "The pod was ended while its init container fetch-data ran (Error, exit code 143).",
    )
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    drained = pod_with_init_containers(143, "Error", conditions=[condition])
    assert failure_of(drained)[0] == "Evicted"
    done = pod_with_init_containers(0, "Completed")
    assert done.failed_init is None
    assert failure_of(replace(done, ended=ContainerEnd(137, "OOMKilled", "")))[0] == "OutOfMemory"


def test_a_run_that_succeeded_without_its_agent_was_not_killed() -> None:
    """Its summary says so, but its last output is missing."""
    summary = '{"v": 1, "state": "succeeded", "reason": null, "message": null}'
    assert failure_of(ended_pod(0, "Completed", summary)) == (
        "Lost",
        "The notebook ran to its end, but not all of it was sent; what had arrived is kept.",
    )


def test_a_pod_of_another_maker_has_no_job_uid() -> None:
    assert pod(phase="Running").job_uid == "job-uid"
    forged = {"namespace": "n", "name": "p", "uid": "u", "labels": {"jupyter-to-job.io/job": "x"}}
    assert pod_record({"metadata": forged}).job_uid == ""


def test_where_a_waiting_pod_stands() -> None:
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes have a free GPU.",
    }
    place = placement_of(pod(phase="Pending", conditions=[unschedulable]))
    assert (place.starting, place.reason) == (False, "Unschedulable")
    assert place.message == "0/3 nodes have a free GPU."

    scheduled = {"type": "PodScheduled", "status": "True"}
    waiting = [{"name": "notebook", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    place = placement_of(pod(phase="Pending", conditions=[scheduled], containerStatuses=waiting))
    assert (place.starting, place.reason) == (True, "ImageUnavailable")
    normal = [{"name": "notebook", "state": {"waiting": {"reason": "PodInitializing"}}}]
    place = placement_of(pod(phase="Pending", conditions=[scheduled], containerStatuses=normal))
    assert (place.starting, place.reason) == (True, None)
