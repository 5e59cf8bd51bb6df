"""Results come back without the dev pod: couriers, on the real cluster.

The dev pods here have no server: they deliver only what a command asks for.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from job_runner.protocol import layout
from tests.cluster.box.boot import A100
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.box.wait import wait_for
from tests.cluster.controllers import add_controller, kill_controller, own_controller
from tests.cluster.deliveries import (
    WORK,
    Place,
    couriers,
    delivery,
    exchange_of,
    find_couriers,
    results,
    until_delivered,
    until_held,
    until_no_couriers,
)
from tests.cluster.large import check_result_by_courier
from tests.cluster.product import DevPod
from tests.cluster.scenes import SubmittedJob, notebook, until_worker_is_free
from tests.cluster.side_by_side import once
from tests.cluster.test_attackers import Call, Victim, calls, files_of
from tests.cluster.test_manifests import CONTROLLER, JOB_CONTROLLER, pod_of
from tests.golden_couriers import FOLDER

AFTER = 2
"""Seconds that dev pods have here."""
MAKE = "open('made.bin', 'wb').write(bytes(range(256)) * {})"
"""A cell that creates a file of so many quarters of a kilobyte."""
WITHIN = 10.0
"""Seconds beyond the wait in which 95 % of the results are delivered."""
IS_STRICT = bool(os.environ.get("JUPYTER_TO_JOB_STRICT"))
MEASURED = 20 if IS_STRICT else 8
"""How many jobs that is measured of."""


BESIDE = pytest.mark.side_by_side
SOON = {"JUPYTER_TO_JOB_COURIER_AFTER": f"{AFTER}s"}
"""The settings of a controller whose couriers start soon."""


def measured(test: Callable[..., None]) -> Callable[..., None]:
    """Decorate a test that measures: it runs alone where its figures have a bound."""
    return test if IS_STRICT else BESIDE(test)


@once
def start_beside(dev_pod: DevPod, images: Images) -> DevPod:
    """Start such a controller; return a dev pod of it."""
    return add_controller(dev_pod.box, images, "couriers", SOON)


def make_place(dev_pod: DevPod, images: Images, name: str, **more: Any) -> Place:
    """Make a place whose couriers start soon."""
    return Place.make(start_beside(dev_pod, images), images, name, **more)


@BESIDE
@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.stem)
def test_it_would_be_created(cluster: Cluster, dev_pod: DevPod, file: Path) -> None:
    """By our controller, in a namespace that enforces the strictest Pod Security."""
    assert dev_pod.cluster is cluster  # the namespace is there
    job = yaml.safe_load(file.read_text())
    cluster.create(job, CONTROLLER, trial=True)
    pod = cluster.create(pod_of(job), JOB_CONTROLLER, trial=True)
    assert (
        pod["spec"]["containers"][0]["args"]
        == job["spec"]["template"]["spec"]["containers"][0]["args"]
    )


@BESIDE
def test_the_dev_pod_is_deleted_while_it_runs(dev_pod: DevPod, images: Images) -> None:
    place = make_place(dev_pod, images, "culled")
    job = place.begin(MAKE.format(4))
    place.stop()
    job.let_end()

    record = until_delivered(job)

    assert record.path == f"{WORK}/{job.name}.ipynb".lstrip("/")
    assert record.artifacts == (f"{WORK}/{job.name}/made.bin".lstrip("/"),)
    result = place.volume.folder / f"{job.name}.ipynb"
    made = place.volume.folder / job.name / "made.bin"
    assert json.loads(result.read_text())["cells"]
    assert made.read_bytes() == bytes(range(256)) * 4
    for path in (result, made):  # its owner's, who may write to them
        assert (path.stat().st_uid, path.stat().st_gid) == (1000, 100)
    until_no_couriers(job)
    place.start()
    assert job.job()["delivery"]["state"] == "delivered"


@BESIDE
def test_a_claim_that_is_full_and_one_that_is_read_only(dev_pod: DevPod, images: Images) -> None:
    full, closed = (
        make_place(dev_pod, images, "full", size="4m"),
        make_place(dev_pod, images, "closed", shared=True),
    )
    # The result has no room, and comes when there is some.
    cells = ("print('x' * 3_000_000)",)
    jobs = [full.begin(*cells), closed.begin()]
    filler = "f = open('filler', 'wb')\nwhile True: f.write(bytes(100_000))"
    full.pod.run("sh", "-c", f'cd {WORK} && python3 -c "{filler}" 2>/dev/null', check=False)
    closed.volume.folder.chmod(0o555)
    for job in jobs:
        job.let_end()

    until_held(jobs[0], "No space left")
    until_held(jobs[1], "Permission denied")

    shown = [job.job()["delivery"] for job in jobs]
    assert [d["state"] for d in shown] == ["held", "held"]
    assert "No space left" in shown[0]["message"]
    assert "Make space" in shown[0]["message"]
    full.pod.run("rm", f"{WORK}/filler")
    closed.volume.folder.chmod(0o777)
    for job in jobs:
        until_delivered(job)
    assert results(closed, jobs[1]) == [f"{jobs[1].name}.ipynb"]
    assert jobs[0].name in full.pod.run("ls", WORK)


@BESIDE
def test_a_claim_that_the_dev_pod_may_only_read(dev_pod: DevPod, images: Images) -> None:
    place = make_place(dev_pod, images, "readable", shared=True)
    (place.volume.folder / "train.ipynb").write_text(notebook("print('here')"))
    place.stop()
    place.read_only = True
    place.start()
    job = place.submit()

    until_held(job, "Read-only file system")

    assert results(place, job) == []
    answer = place.pod.run("sh", "-c", f"jupyter-to-job deliver {job.name} 2>&1; echo code $?")
    assert "Read-only file system" in answer
    assert "code 1" in answer
    place.pod.run("jupyter-to-job", "delete", job.name)  # else it is tried for ever


@BESIDE
def test_a_folder_that_is_gone(dev_pod: DevPod, images: Images) -> None:
    place = make_place(dev_pod, images, "tidied")
    job = place.begin(folder=f"{WORK}/old")
    place.pod.run("rm", "-r", f"{WORK}/old")
    place.stop()
    job.let_end()

    until_held(job, "Make the folder again")

    (place.volume.folder / "old").mkdir()
    (place.volume.folder / "old").chmod(0o777)
    assert until_delivered(job).path.endswith(f"work/old/{job.name}.ipynb")


@BESIDE
def test_a_name_that_is_taken(dev_pod: DevPod, images: Images) -> None:
    place = make_place(dev_pod, images, "taken")
    job = place.begin(MAKE.format(1))
    taken, folder = place.volume.folder / f"{job.name}.ipynb", place.volume.folder / job.name
    taken.write_text("mine")
    folder.mkdir()
    (folder / "mine").write_text("mine")
    job.let_end()

    record = until_delivered(job)

    assert record.path.endswith(f"{job.name}-2.ipynb")
    assert record.artifacts[0].endswith(f"{job.name}-2/made.bin")
    assert taken.read_text() == (folder / "mine").read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["mine"]


@pytest.mark.side_by_side(2)
def test_a_dev_pod_that_begins_again_on_another_node(dev_pod: DevPod, images: Images) -> None:
    """With the same claim, which all nodes share: it is the same workspace."""
    until_worker_is_free(dev_pod.box)
    place = make_place(dev_pod, images, "moved", shared=True)
    first, second = place.begin(MAKE.format(1)), place.begin(MAKE.format(1))
    place.stop()
    place.node = A100
    place.start()

    first.let_end()
    waited = first.until_ended()
    assert waited["delivery"]["state"] == "delivered", waited
    second.let_end()  # nobody waits for this one
    until_delivered(second)

    for job in (first, second):
        assert results(place, job) == [job.name, f"{job.name}.ipynb"]
        assert job.job()["delivery"]["state"] == "delivered"


def stop_when_it_writes(place: Place, job: SubmittedJob, known: frozenset[int]) -> int:
    """Stop the next courier of a job in the middle of its work; return its process id.

    A look at all processes takes longer than the writing may, so the courier is found while it
    starts, and then only its draft is waited for.
    """

    def drafts() -> set[str]:
        return {path.name for path in place.volume.folder.glob(".jupyter-to-job-*")}

    def catch(pid: int) -> bool:
        """Stop a process as soon as there is a draft; it may be none of ours, or end before."""
        look_again = time.monotonic() + 0.5
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < look_again:
                os.kill(pid, 0)
                if drafts() - before:
                    os.kill(pid, signal.SIGSTOP)
                    if drafts() - before:
                        return True
                    os.kill(pid, signal.SIGCONT)  # it was ready just before
                time.sleep(0.001)
        return False

    before, end = drafts(), time.monotonic() + 90
    while time.monotonic() < end:
        for pid in find_couriers(job) - known:
            if catch(pid):
                return pid
        time.sleep(0.01)
    raise AssertionError(f"no courier of {job.name} was caught while it wrote")


def test_two_couriers_and_a_dev_pod_at_once(dev_pod: DevPod, images: Images) -> None:
    """The first courier is one of a controller that is gone."""
    with own_controller(dev_pod.box, images, "crowded", SOON) as beside:
        check_two_couriers(Place.make(beside, images, "two-at-once"))


def check_two_couriers(place: Place) -> None:
    """Check that a job is delivered once, with two couriers and its user's own command."""
    job = place.begin(MAKE.format(400_000))
    job.let_end()
    first = stop_when_it_writes(place, job, frozenset())
    with ThreadPoolExecutor(1) as pool:  # the next one may have delivered before all is served
        catching = pool.submit(stop_when_it_writes, place, job, frozenset([first]))
        kill_controller(place.pod)
        second = catching.result()

    with ThreadPoolExecutor(1) as pool:
        pulled = pool.submit(place.pod.run, "jupyter-to-job", "deliver", job.name, check=False)
        for pid in (first, second):
            if find_couriers(job) & {pid}:
                os.kill(pid, signal.SIGCONT)
        pulled.result()

    record = until_delivered(job)
    until_no_couriers(job)
    assert results(place, job) == [job.name, f"{job.name}.ipynb"]
    made = place.volume.folder / job.name / "made.bin"
    assert made.read_bytes() == bytes(range(256)) * 400_000
    assert [path.name for path in made.parent.iterdir()] == ["made.bin"]
    assert record.path.endswith(f"{job.name}.ipynb")
    assert not list(place.volume.folder.glob(".jupyter-to-job-*"))


def ask(pod: DevPod, token: str, asked: Sequence[Call]) -> list[int]:
    """Send requests with a token to a pod's gateway; return the status of each answer."""
    url = f"{pod.controller.url(pod.box)}/api/"
    headers = {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=url, headers=headers, timeout=60) as client,
        ThreadPoolExecutor(8) as pool,
    ):

        def status(call: Call) -> int:
            return client.request(call[0], call[1], content=call[2]).status_code

        return list(pool.map(status, asked))


def stop_a_courier(place: Place, *cells: str) -> tuple[SubmittedJob, int]:
    """Stop the courier of a job before it has delivered; return the job, and its process id.

    A courier that was faster than this is let go, and one of another job is waited for.
    """
    for _ in range(5):
        job = place.submit(*cells)
        stopped: set[int] = set()

        def is_caught(job: SubmittedJob = job, stopped: set[int] = stopped) -> bool:
            for pid in find_couriers(job):
                os.kill(pid, signal.SIGSTOP)
                stopped.add(pid)
            return bool(stopped) or delivery(job) is not None

        wait_for("there is a courier", is_caught, max_pause=0.05)
        if delivery(job) is None:
            (pid,) = stopped
            return job, pid
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    raise AssertionError("every courier was faster")


@BESIDE
def test_a_couriers_token_is_good_for_its_own_job(dev_pod: DevPod, images: Images) -> None:
    """Whoever takes it from a courier's pod cannot even tell whether the user has another job."""
    place = make_place(dev_pod, images, "stolen")
    pod = place.pod
    other = SubmittedJob.submit(pod, "others", "-f", "crowd", cells=("print('a secret')",))
    assert other.until_ended()["owner"] == f"{pod.namespace}/ada"
    before = files_of(pod, other.name)
    job, pid = stop_a_courier(place, "print('here')", MAKE.format(1))
    try:
        (courier,) = couriers(job)
        read = ("cat", "/var/run/secrets/jupyter-to-job/token")
        name = courier["metadata"]["name"]
        token = pod.cluster.kubectl("exec", name, "-n", pod.namespace, "--", *read)
        own, nothing = f"exchange/{job.name}", "{}"
        deliverable = [("GET", f"{own}/{layout.DELIVERABLE}", "")]
        wait_for("its courier is known", lambda: ask(pod, token, deliverable) == [200])

        hers = calls(Victim(pod, other.name, other.name), other.name, before)
        assert len(hers) > 150
        assert set(ask(pod, token, hers)) <= {404, 405}
        kept = (layout.REQUEST, layout.ORIGIN, layout.SNAPSHOT, f"attempt-1/{layout.OUTCOME}")
        assert ask(pod, token, [("GET", f"{own}/{name}", "") for name in kept]) == [403] * 4
        assert ask(pod, token, [("PUT", f"{own}/{name}", nothing) for name in kept]) == [403] * 4
        lists = [("GET", path, "") for path in ("jobs", f"jobs/{job.name}", "flavors", "events")]
        blob = ("PUT", f"blobs/{'0' * 64}", "x")
        assert ask(pod, token, [*lists, blob, ("POST", "jobs", nothing)]) == [404] * 6
    finally:
        os.kill(pid, signal.SIGCONT)

    until_delivered(job)
    until_no_couriers(job)
    assert results(place, job) == [job.name, f"{job.name}.ipynb"]
    assert ask(pod, token, [*deliverable, *lists, *hers[:10]]) == [403] * 15
    assert files_of(pod, other.name) == before


@BESIDE
def test_a_large_result_is_in_nobodys_memory(dev_pod: DevPod, images: Images) -> None:
    """In small: the soak has 300 MB."""
    check_result_by_courier(make_place(dev_pod, images, "of-large"), megabytes=30, timeout=120)


@measured
def test_how_long_it_takes(dev_pod: DevPod, images: Images) -> None:
    """From the outcome to the delivery, beyond the wait for a dev pod."""
    place = make_place(dev_pod, images, "measured")
    jobs = [place.submit("print('here')", MAKE.format(1), stem=f"n{i}") for i in range(MEASURED)]
    for job in jobs:
        until_delivered(job, timeout=240)
    seconds = []
    for job in jobs:
        directory = exchange_of(job).directory(job.name)
        decided = (directory / "attempt-1" / layout.OUTCOME).stat().st_mtime
        seconds.append((directory / layout.DELIVERY).stat().st_mtime - decided - AFTER)
    seconds.sort()
    slow = seconds[int(0.95 * len(seconds)) - 1]
    figures = f"median {statistics.median(seconds):.1f} s, 95 % {slow:.1f} s, {seconds[-1]:.1f} s"
    sys.stdout.write(f"outcome to delivered by courier, beyond {AFTER} s: {figures}\n")
    if IS_STRICT:
        assert slow <= WITHIN, figures
    for job in jobs:
        until_no_couriers(job)
