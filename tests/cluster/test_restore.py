"""The exchange is copied while all works and put back later, as docs/operations.md says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster.box.boot import Box
from tests.cluster.box.cluster import NotFoundError
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import own_controller, without_controller
from tests.cluster.product import HOME, DevPod
from tests.cluster.scenes import SubmittedJob, notebook, submit


def copy(source: Path, target: Path) -> None:
    """Copy a folder with modes, owners and links. Drafts may vanish meanwhile."""
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "--archive", f"{source}/.", target], check=False, capture_output=True)


def restore(backup: Path, exchange: Path) -> None:
    """Put a backup in the place of what is there."""
    for path in exchange.iterdir():
        path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)
    subprocess.run(["cp", "--archive", f"{backup}/.", exchange], check=True)


@pytest.mark.side_by_side(-1)
def test_a_backup_is_put_back(
    box: Box, images: Images, dev_pod: DevPod, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert dev_pod.cluster is box  # the first controller is there
    settings = {"JUPYTER_TO_JOB_COURIER_AFTER": "1h"}
    with own_controller(box, images, "restored", settings) as mine:
        check_backup(mine, tmp_path_factory.mktemp("backup"))


def check_backup(mine: DevPod, backup: Path) -> None:
    """Check jobs in each state that are copied, and put back after they went on."""
    box, exchange = mine.box, mine.controller.exchange(mine.box).root
    one_by_one = ("-f", "crowd", "--group", "one-by-one", "--group-limit", "1")
    ends_later = SubmittedJob.counting(mine, "ends-later", *one_by_one)
    runs, waits, delivered_later = (
        SubmittedJob.counting(mine, stem, "-f", "crowd")
        for stem in ("runs", "waits", "delivered-later")
    )
    jobs = [runs, ends_later, waits, delivered_later]
    mine.write(f"{HOME}/delivered.ipynb", notebook("print('here')"))
    delivered = mine.job(submit(mine, f"{HOME}/delivered.ipynb")["name"])
    assert delivered["delivery"]["state"] == "delivered"
    printed = {job: job.until_printed() for job in jobs}
    begins_later = SubmittedJob.counting(mine, "begins-later", *one_by_one)
    begins_later.until(lambda job: job["reason"] == "GroupLimit")
    for job in (waits, delivered_later):
        job.let_end()
        job.until(lambda job: job["state"] == "succeeded")

    for _ in range(2):
        copy(exchange, backup)

    ends_later.let_end()
    for job in (ends_later, delivered_later):
        job.check_counted(job.until_ended(), None, printed[job])
    unknown = SubmittedJob.counting(mine, "unknown", "-f", "crowd")
    unknown.until_printed()
    runs.until_printed(more_than=printed[runs])
    printed[begins_later] = begins_later.until_printed()
    with without_controller(mine):
        restore(backup, exchange)

    # What had ended is there; of two that wait for their delivery one had been delivered since.
    assert {**mine.job(delivered["name"]), "events": None} == {**delivered, "events": None}
    assert waits.job()["delivery"]["state"] == "pending"
    for job in (waits, delivered_later):
        job.check_counted(job.until_ended(), None, printed[job])
    # What runs goes on. Of what ended meanwhile there is what was in the backup, beside its result.
    for job in (runs, begins_later):
        job.until_printed(more_than=printed[job])
        job.let_end()
        job.check_counted(job.until_ended(), None, printed[job])
    ends_later.check_counted(ends_later.until_ended(), "Lost", printed[ends_later], copies=2)
    check_unknown(box, unknown)
    again = SubmittedJob.counting(mine, "unknown", "-f", "crowd")
    again.until_printed()
    again.let_end()
    again.check_counted(again.until_ended(), None)


def check_unknown(box: Box, job: SubmittedJob) -> None:
    """Check a job that was submitted after the backup: its Job is found by the label, and goes."""
    namespace = job.dev_pod.namespace
    show = f"jupyter-to-job show {job.name} 2>&1; echo code $?"
    assert "code 3" in job.dev_pod.run("sh", "-c", show)
    selector = f"--selector=jupyter-to-job.io/job={job.name}"
    box.kubectl("delete", "jobs", selector, "-n", namespace)

    def is_gone() -> bool:
        try:
            box.get("job", job.name, namespace)
        except NotFoundError:
            return not job.pods()
        return False

    wait_for("nothing of it is left", is_gone, timeout=90)
