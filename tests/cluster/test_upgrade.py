"""An upgrade with jobs under way, and back again: the overlay is applied with other images.

The next minor version is this one under another number, in images of its own. So what is shown is
that old and new processes meet, that each says which it is, and that a change of the controller
takes nothing from jobs. What they refuse of each other is shown in tests/server/test_versions.py.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_to_job import __version__
from tests.cluster.box.boot import Box
from tests.cluster.box.images import Images, wheel_for
from tests.cluster.controllers import deploy, own_controller, until_served
from tests.cluster.imagebuild.build import build
from tests.cluster.product import HOME, DevPod, start_dev_pod
from tests.cluster.scenes import SubmittedJob, notebook, submit, text_of

TAG = "next"
MAJOR, MINOR, _ = __version__.split(".")
NEXT = f"{MAJOR}.{int(MINOR) + 1}.0"
ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


def wheel_of_next(wheel: Path, folder: Path) -> Path:
    """Return a copy of a wheel that says that it is the next minor version."""
    name, now, after = wheel.name.split("-")[0], f"-{__version__}.", f"-{NEXT}."
    copy = folder / wheel.name.replace(f"-{__version__}-", f"-{NEXT}-")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith((".dist-info/METADATA", f"{name}/__init__.py")):
                content = content.replace(__version__.encode(), NEXT.encode())
            elif entry.filename.endswith(".dist-info/RECORD"):
                content = content.replace(f"{name}{now}".encode(), f"{name}{after}".encode())
            new.writestr(entry.filename.replace(f"{name}{now}", f"{name}{after}"), content)
    return copy


def build_next(box: Box, images: Images, folder: Path) -> Images:
    """Build images of the next minor version, and load them on all nodes."""
    wheel = wheel_of_next(wheel_for(folder, front_end=False), folder)
    archive = folder / "next.tar"
    build(wheel, archive, TAG, ["controller", "notebook"])
    box.load_image(archive)
    archive.unlink()
    notebook_image, controller = map(_next_name, (images.notebook, images.controller))
    return replace(images, notebook=notebook_image, controller=controller)


def _next_name(name: str) -> str:
    return f"{name.rpartition(':')[0]}:{TAG}"


def version_of_gateway(dev_pod: DevPod) -> str:
    url = f"{dev_pod.controller.gateway}/api/health"
    return str(json.loads(dev_pod.run("python3", "-c", ASK, url))["version"])


def image_of_agent(job: SubmittedJob) -> str:
    """Return the image of the agent of a job whose pod is there."""
    (pod,) = job.pods()
    (agent,) = pod["spec"]["initContainers"]
    return str(agent["image"])


@pytest.mark.side_by_side(-1)
def test_an_upgrade_and_the_way_back_lose_nothing(
    box: Box, images: Images, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    with own_controller(box, images, "upgraded") as mine:
        check_upgrade(mine, images, tmp_path_factory.mktemp("next"))


def check_upgrade(mine: DevPod, images: Images, folder: Path) -> None:
    """Check jobs that run and wait while the controller is replaced, and replaced again."""
    box = mine.box
    group = ("--group", "upgrade", "--group-limit", "1")
    running = SubmittedJob.counting(mine, "upgraded", *group)
    printed = running.until_printed()
    queued = SubmittedJob.counting(mine, "upgraded-later", *group)
    queued.until(lambda job: job["state"] == "queued" and job["message"])
    assert version_of_gateway(mine) == __version__

    next_images = build_next(box, images, folder)
    deploy(box, next_images, mine.controller, {})
    until_served(mine)
    assert version_of_gateway(mine) == NEXT
    running.until_printed(more_than=printed)
    assert image_of_agent(running) == images.controller, "it began with the old agent"
    running.let_end()
    running.check_counted(running.until_ended(), None, printed)
    printed = queued.until_printed()
    assert image_of_agent(queued) == next_images.controller, "it begins with the new agent"

    newer = start_dev_pod(
        box,
        next_images,
        mine.namespace,
        "jupyter-next",
        user="ada-next",
        controller=mine.controller,
    )
    assert NEXT in newer.run("jupyter-to-job", "--version")
    deploy(box, images, mine.controller, {})
    until_served(mine)
    queued.until_printed(more_than=printed)
    queued.let_end()
    queued.check_counted(queued.until_ended(), None, printed)
    newer.write(f"{HOME}/newer.ipynb", notebook("print('new dev pod, old controller')"))
    job = submit(newer, f"{HOME}/newer.ipynb")
    assert job["state"] == "succeeded", job
    assert "old controller" in text_of(newer.read_json(f"{HOME}/{job['name']}.ipynb"))
