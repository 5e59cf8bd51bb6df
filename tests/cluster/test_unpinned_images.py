"""Where the administrator does not allow it, no job runs an image of which only a tag is known."""

from __future__ import annotations

import json

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images
from tests.cluster.controllers import own_controller
from tests.cluster.product import HOME, DevPod
from tests.cluster.scenes import notebook
from tests.cluster.test_volumes import preflight

VARIABLE = "JUPYTER_TO_JOB_UNPINNED_IMAGES"


@pytest.mark.side_by_side(-1)
def test_it_is_told_and_refused(box: Box, images: Images, dev_pod: DevPod) -> None:
    """Our images come from no registry, so their digests are not known to the cluster."""
    assert dev_pod.cluster is box  # the first controller is there
    with own_controller(box, images, "strict", {VARIABLE: "false"}) as strict:  # the default
        check_refused(strict)


def check_refused(strict: DevPod) -> None:
    """Check what the dialog and SEND say."""
    path = f"{HOME}/unpinned.ipynb"
    strict.write(path, notebook("print('never')"))
    told = {p["code"]: p for p in preflight(strict, path, "any")["problems"]}
    assert told["image_unpinned"]["blocking"]
    assert "Which build of" in told["image_unpinned"]["message"]

    answer = strict.run("sh", "-c", f"jupyter-to-job submit {path} 2>&1; echo code $?")

    assert "Which build of" in answer
    assert VARIABLE in answer
    assert "code 4" in answer
    assert json.loads(strict.run("jupyter-to-job", "list", "--all", "--json")) == []
    assert strict.cluster.kubectl("get", "jobs", "-n", strict.namespace, "-o=name") == ""
