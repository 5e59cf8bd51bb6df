"""What a job costs the API server, by its audit log."""

from __future__ import annotations

from functools import partial

from tests.cluster.box.audit import Request
from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import KubectlError
from tests.cluster.box.wait import wait_for
from tests.cluster.product import HOME, LISTED, NAMESPACE, TEAM, DevPod
from tests.cluster.scenes import SubmittedJob, notebook, submit

IDENTITIES = [
    f"system:serviceaccount:{NAMESPACE}:controller",
    *(f"system:serviceaccount:{namespace}:default" for namespace in LISTED),
]
"""Of the controller; of dev pods and job pods, which have no rights."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")
NO_WRITES = ("events", "leases", "tokenreviews")
MAX_WRITES = 8
JOBS = 2


def writes(box: Box) -> list[Request]:
    """Return what our identities wrote."""
    return [
        request
        for user in IDENTITIES
        for request in box.audit.requests(user)
        if request.verb in WRITES and request.resource not in NO_WRITES and not request.is_dry_run
    ]


def test_writes_over_the_life_of_a_job(dev_pod: DevPod, box: Box) -> None:
    """From its submission to the end of its Job, which a delete brings forward."""
    dev_pod.write(f"{HOME}/counted.ipynb", notebook("print('one')", "print('two')"))
    before = len(writes(box))
    for _ in range(JOBS):
        job = submit(dev_pod, f"{HOME}/counted.ipynb")
        assert job["state"] == "succeeded"
        dev_pod.run("jupyter-to-job", "delete", job["name"])
        wait_for("its Job is gone", partial(is_gone, box, job["name"]))

    made = writes(box)[before:]
    said = [f"{request.verb} {request.resource}/{request.name}" for request in made]
    print(f"{len(made) / JOBS:g} writes a job: {said}")  # noqa: T201
    assert len({request.name for request in made if request.verb == "create"}) == JOBS, said
    assert len(made) <= MAX_WRITES * JOBS, said


def test_a_cancel_is_one_delete(dev_pod: DevPod, box: Box) -> None:
    """Its pod is told to end; its Job stays for who wants to look at it."""
    job = SubmittedJob.counting(dev_pod, "one-delete")
    printed = job.until_printed()
    before = len(writes(box))
    dev_pod.run("jupyter-to-job", "cancel", job.name)
    ended = job.until_ended()
    assert ended["state"] == "cancelled", ended
    assert job.check_delivered(ended) and printed
    deletes = [request for request in writes(box)[before:] if request.verb.startswith("delete")]
    assert len(deletes) == 1, deletes


def is_gone(box: Box, name: str) -> bool:
    try:
        box.get("job", name, TEAM)
    except KubectlError:
        return True
    return False
