"""What a job costs the API server, by its audit log."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cluster.box.audit import Request
from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import NotFoundError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import own_controller
from tests.cluster.product import HOME, NAMESPACE, DevPod
from tests.cluster.scenes import SubmittedJob, notebook, submit

pytestmark = pytest.mark.side_by_side
WRITES = ("create", "update", "patch", "delete", "deletecollection")
NO_WRITES = ("events", "leases", "tokenreviews")
MAX_WRITES = 8
JOBS = 2
OF_WATCHES = ("labelSelector=", "FailedCreate")
"""What stands in the lists with which watches begin."""


def requests(dev_pod: DevPod) -> list[Request]:
    """Return what our identities asked for in a dev pod's namespace, with a controller of its own.

    These are the controller, and the account of dev pods and job pods, which has no rights.
    """
    namespace = dev_pod.namespace
    return [
        request
        for account in (f"{NAMESPACE}:controller", f"{namespace}:default")
        for request in dev_pod.box.audit.requests(f"system:serviceaccount:{account}")
        if request.namespace == namespace
    ]


def writes(dev_pod: DevPod) -> list[Request]:
    """Return what they wrote there."""
    return [
        request
        for request in requests(dev_pod)
        if request.verb in WRITES and request.resource not in NO_WRITES and not request.is_dry_run
    ]


def reads(dev_pod: DevPod) -> list[str]:
    """Return what they read there but by watches, and by the lists with which these begin."""
    return [
        f"{request.verb} {request.resource}/{request.name}"
        for request in requests(dev_pod)
        if request.verb in ("get", "list") and not any(part in request.uri for part in OF_WATCHES)
    ]


def test_writes_and_reads_over_the_life_of_a_job(box: Box, images: Images, dev_pod: DevPod) -> None:
    """From its submission to the end of its Job, which a delete brings forward.

    The dev pod is read once, and all else is known by watches.
    """
    assert dev_pod.cluster is box  # the first controller is there
    with own_controller(box, images, "counted") as mine:
        check_requests(mine)
        check_cancel(mine)


def check_requests(mine: DevPod) -> None:
    """Check what jobs cost that are the only ones of their controller."""
    mine.write(f"{HOME}/counted.ipynb", notebook("print('one')", "print('two')"))
    for _ in range(JOBS):
        job = submit(mine, f"{HOME}/counted.ipynb")
        assert job["state"] == "succeeded"
        mine.run("jupyter-to-job", "delete", job["name"])
        wait_for("its Job is gone", partial(is_gone, mine, job["name"]))

    made = writes(mine)
    said = [f"{request.verb} {request.resource}/{request.name}" for request in made]
    print(f"{len(made) / JOBS:g} writes a job: {said}")  # noqa: T201
    assert len({request.name for request in made if request.verb == "create"}) == JOBS, said
    assert len(made) <= MAX_WRITES * JOBS, said
    assert reads(mine) == [f"get pods/{mine.name}"]


def check_cancel(mine: DevPod) -> None:
    """Check that a cancel is one delete: the pod's. Its Job stays for who wants to look at it."""
    job = SubmittedJob.counting(mine, "one-delete")
    printed = job.until_printed()
    before = len(writes(mine))
    mine.run("jupyter-to-job", "cancel", job.name)
    ended = job.until_ended()
    assert ended["state"] == "cancelled", ended
    assert job.check_delivered(ended) and printed
    deletes = [request for request in writes(mine)[before:] if request.verb.startswith("delete")]
    assert [request.resource for request in deletes] == ["pods"], deletes


def is_gone(mine: DevPod, name: str) -> bool:
    """Tell whether there is no Job of a name."""
    try:
        mine.cluster.get("job", name, mine.namespace)
    except NotFoundError:
        return True
    return False
