"""GPUs: each goes to one job at a time, whoever is killed, and a hung driver hangs nobody."""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.backends.local.hosts import lock_path, this_host

from .. import notebooks, pretend_nvml
from ..processes import kill, until
from .cli import Cli

SHOWS = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'unset'))"
GPU = ("-f", "gpu-1", "-d", "t4")
ROOMY = "cpu=64,memory=512Gi"


def visible_gpus(cli: Cli, job: dict[str, Any]) -> str:
    return notebooks.printed(cli.result(job)).split("\n")[0]


@pytest.fixture
def driver(cli: Cli, tmp_path: Path) -> Path:
    """A driver with two GPUs, of which one is in MIG mode."""
    parts = [("MIG-1", "1g.10gb"), ("MIG-2", "1g.10gb")]
    folder = pretend_nvml.build(tmp_path / "driver", {"GPU-whole": [], "GPU-split": parts})
    cli.variables["LD_LIBRARY_PATH"] = str(folder)
    return folder


def test_no_two_jobs_get_one_gpu(cli: Cli) -> None:
    """Also not while dispatchers are killed: the next one knows which are taken."""
    cli.capacity = f"{ROOMY},nvidia.com/gpu=2"
    notebooks.write(cli.workspace / "a.ipynb", SHOWS, "import time; time.sleep(1)")
    submits = [cli.start("submit", "a.ipynb", *GPU) for _ in range(5)]
    names = [process.communicate(timeout=120)[0].strip() for process in submits]
    waiting = cli.start("wait", *names, "--json")
    for _ in range(2):
        dispatchers = until(cli.dispatchers, "a dispatcher")
        time.sleep(0.7)  # somewhere between one job's start and another's end
        for dispatcher in dispatchers:  # what signs a result of one that was killed looks like one
            kill(dispatcher)
    jobs = json.loads(waiting.communicate(timeout=120)[0])
    assert [job["state"] for job in jobs] == ["succeeded"] * 5
    runs = sorted((visible_gpus(cli, job), job["started"], job["finished"]) for job in jobs)
    assert {device for device, _, _ in runs} == {"0", "1"}
    for before, after in pairwise(runs):
        assert before[0] != after[0] or before[2] <= after[1]


def test_a_start_that_nobody_saw_keeps_its_gpu(cli: Cli) -> None:
    """The dispatcher was killed between its choice and the runner's first sign."""
    cli.capacity = f"{ROOMY},nvidia.com/gpu=2"
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    blocking = [cli.submit_waiting(*GPU) for _ in range(2)]
    chosen, other = (cli.submit("a.ipynb", *GPU) for _ in range(2))
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    slot = {"v": 1, "host": _host(cli, blocking[0]), "devices": {"nvidia.com/gpu": ["1"]}}
    (cli.exchange / other / "slot.json").write_text(json.dumps(slot))
    cli.release()
    jobs = {job["name"]: job for job in cli.json("wait", *blocking, chosen, other)}
    assert {job["state"] for job in jobs.values()} == {"succeeded"}
    assert visible_gpus(cli, jobs[other]) == "1"


def test_a_start_that_fails_keeps_its_gpu(cli: Cli, tmp_path: Path) -> None:
    """It is tried again: nobody else may have got the device meanwhile."""
    cli.capacity = f"{ROOMY},nvidia.com/gpu=1"
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    blocking = cli.submit_waiting(*GPU)
    first, second = (cli.submit("a.ipynb", *GPU) for _ in range(2))
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    path = cli.exchange / first / "request.json"
    path.write_text(path.read_text().replace(json.dumps(sys.executable), json.dumps(str(python))))
    log = lock_path(cli.exchange, this_host()).with_name("log")
    with python.open("a"):  # the system starts no program that somebody is writing
        cli.release()
        assert cli.json("wait", blocking)["state"] == "succeeded"
        until(lambda: f"{first}: tried again" in log.read_text(), "a start that failed")
        time.sleep(1)
        assert not (cli.exchange / second / "attempt-1").exists()
    jobs = cli.json("wait", first, second)
    assert [job["state"] for job in jobs] == ["succeeded"] * 2
    assert jobs[0]["finished"] <= jobs[1]["started"]


def _host(cli: Cli, job: str) -> str:
    runner = json.loads((cli.exchange / job / "attempt-1" / "runner.json").read_text())
    return str(runner["host"])


def test_a_job_for_cpus_does_not_wait_behind_one_for_a_gpu(cli: Cli) -> None:
    cli.capacity = f"{ROOMY},nvidia.com/gpu=1"
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    running = cli.submit_waiting(*GPU)
    waiting = cli.submit("a.ipynb", *GPU)
    job = cli.json("submit", "a.ipynb", "--wait")
    assert (job["state"], visible_gpus(cli, job)) == ("succeeded", "")  # and it sees no GPU
    assert cli.json("show", waiting)["position"] == 1
    cli.release()
    jobs = cli.json("wait", running, waiting)
    assert [job["state"] for job in jobs] == ["succeeded", "succeeded"]


def test_a_jobs_own_variables_do_not_win(cli: Cli) -> None:
    """By accident nobody takes a GPU that is another's."""
    cli.capacity = f"{ROOMY},nvidia.com/gpu=2"
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    takes = ("-e", "CUDA_VISIBLE_DEVICES=1", "--wait")
    assert visible_gpus(cli, cli.json("submit", "a.ipynb", *GPU, *takes)) == "0"
    assert visible_gpus(cli, cli.json("submit", "a.ipynb", *takes)) == ""


def test_the_drivers_own_names(cli: Cli, driver: Path) -> None:
    cli.capacity = ROOMY
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    whole = cli.json("submit", "a.ipynb", *GPU, "--wait")
    assert visible_gpus(cli, whole) == "GPU-whole"
    part = cli.json("submit", "a.ipynb", "-f", "gpu-part", "-d", "a100-mig-1g", "--wait")
    assert visible_gpus(cli, part) == "MIG-1"
    refused = cli.run("submit", "a.ipynb", "-f", "gpu-4", "-d", "a100")
    assert refused.returncode == 4
    assert "4 nvidia.com/gpu" in refused.stderr and "1 nvidia.com/gpu" in refused.stderr


def test_jobs_for_cpus_hide_no_gpu(cli: Cli, driver: Path) -> None:
    """Their dispatcher has no reason to ask the driver."""
    cli.capacity = "cpu=8,memory=32Gi"
    running, waiting = cli.submit_waiting("-f", "large"), cli.submit("waits.ipynb", "-f", "large")
    assert cli.json("show", waiting)["state"] == "queued"
    described = cli.json("flavors")
    assert described["flavors"]["gpu-1"]["unavailable_reason"] is None
    devices = described["devices"]
    assert (devices["t4"]["free"], devices["t4"]["total"]) == (1, 1)
    assert (devices["a100-mig-1g"]["free"], devices["a100-mig-1g"]["total"]) == (2, 2)
    cli.release()
    jobs = cli.json("wait", running, waiting)
    assert [job["state"] for job in jobs] == ["succeeded"] * 2


def test_files_of_the_user_are_no_modules(cli: Cli, driver: Path) -> None:
    cli.capacity = ROOMY
    (cli.workspace / "random.py").write_text("raise SystemExit('a file of the user ran')")
    notebooks.write(cli.workspace / "a.ipynb", "1")
    assert cli.json("submit", "a.ipynb", *GPU, "--wait")["state"] == "succeeded"
    assert "a file of the user ran" not in cli.run("doctor").stdout


def test_what_nobody_can_honour_here_is_refused(cli: Cli, driver: Path) -> None:
    """A share of a GPU by software is a cluster's: this machine would give all of it."""
    cli.capacity = ROOMY
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    refused = cli.run("submit", "a.ipynb", "-f", "gpu-part", "-d", "a100-twentieth")
    assert refused.returncode == 4
    assert "has no nvidia.com/gpu" in refused.stderr


def test_a_driver_that_hangs(cli: Cli, driver: Path) -> None:
    cli.capacity = ROOMY
    pretend_nvml.hang(driver)
    notebooks.write(cli.workspace / "a.ipynb", SHOWS)
    refused = cli.run("submit", "a.ipynb", *GPU)
    assert refused.returncode == 4 and "did not answer" in refused.stderr
    assert cli.json("submit", "a.ipynb", "--wait")["state"] == "succeeded"
