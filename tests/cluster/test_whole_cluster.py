"""A controller for all namespaces: k8s/overlays/whole-cluster, with its rights and without."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from tests.cluster import product
from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import KubectlError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import until_rolled_out, until_served
from tests.cluster.product import FIRST, HOME, NAMESPACE, DevPod, start_dev_pod
from tests.cluster.scenes import notebook, submit

pytestmark = pytest.mark.last(2)  # what it asks for everywhere is granted nowhere before
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:controller"
OF_RIGHTS = "clusterrolebinding/jupyter-to-job-controller-everywhere"


def test_a_job_from_a_namespace_that_is_listed_nowhere(
    box: Box, images: Images, dev_pod: DevPod, tmp_path: Path
) -> None:
    overlay = product.write_overlay(tmp_path, images).parent / "whole-cluster"
    check_without_rights(box, overlay)

    box.kubectl("apply", "-k", str(overlay))
    box.kubectl("delete", "pods", *FIRST.pods)  # else its next try is in half a minute
    begun = datetime.now(timezone.utc)
    until_rolled_out(box)
    until_served(dev_pod)
    anywhere = start_dev_pod(box, images, "anywhere")
    anywhere.write(f"{HOME}/anywhere.ipynb", notebook("print('here')"))
    job = submit(anywhere, f"{HOME}/anywhere.ipynb")
    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered"), job
    assert job["owner"] == "anywhere/ada"
    assert [
        f"{request.verb} {request.uri}"
        for request in box.audit.requests(ACCOUNT)
        if request.time > begun and not request.is_allowed
    ] == []


def check_without_rights(box: Box, overlay: Path) -> None:
    """Check that a controller for all namespaces ends at its start without the rights for them."""
    manifests = list(yaml.safe_load_all(box.kubectl("kustomize", str(overlay))))
    kept = [m for m in manifests if f"{m['kind']}/{m['metadata']['name']}".lower() != OF_RIGHTS]
    assert len(kept) == len(manifests) - 1
    document = {"apiVersion": "v1", "kind": "List", "items": kept}
    box.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    refusal = "the controller may not watch Jobs and pods in all namespaces. Apply k8s/overlays/"
    wait_for("it has ended", lambda: refusal in last_words(box) and 2 in exit_codes(box))


def last_words(box: Box) -> str:
    """Return what the controller's container, or the one that it follows, has said."""
    said = ""
    for flags in ((), ("--previous",)):
        with contextlib.suppress(KubectlError):  # there is none
            said += box.kubectl("logs", *FIRST.pods, "--tail=-1", *flags)
    return said


def exit_codes(box: Box) -> set[int]:
    """Return with which codes the containers of the controller's pods have ended."""
    pods = box.items("pods", NAMESPACE, FIRST.label)
    states = [
        status[key]
        for pod in pods
        for status in pod["status"].get("containerStatuses", [])
        for key in ("state", "lastState")
    ]
    return {state["terminated"]["exitCode"] for state in states if "terminated" in state}
