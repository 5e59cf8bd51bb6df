"""Preflight behind a gateway: both sides at the same time, and what each knows of kernels."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.controller.intake.budgets import BLOBS_FOLDER
from jupyter_to_job.domain.errors import PlanChanged, StorageFull, TooLarge, UnknownChoice
from jupyter_to_job.domain.job import Changes, Submission
from jupyter_to_job.domain.preflight import JobImage, Preflight, Problem
from jupyter_to_job.exchange import FileExchange, Request
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.preflight import inspect_files as inspect_workspace
from jupyter_to_job.service.submitting.submission import Caller, local_environment

from .. import notebooks
from ..gateways import context_of, serving
from ..pretend_checks import PodsWithVolumes, PretendChecks, mounted_claim

OVER_QUOTA = Problem("over_quota", "No room now.", "It waits.", blocking=False)
OWN = JobImage("notebook:1", is_own=True)


class SlowChecks(PretendChecks):
    """Answers when it may, and tells when it is asked."""

    def __init__(self) -> None:
        super().__init__(OVER_QUOTA)
        self.before, self.begun = threading.Event(), threading.Event()
        self.before.set()

    def problems(self, request: Request, origin: Any) -> list[Problem]:
        self.begun.set()
        assert self.before.wait(10), "the notebook is not read meanwhile"
        return super().problems(request, origin)


@pytest.fixture
def checks() -> SlowChecks:
    return SlowChecks()


@pytest.fixture
def admitted() -> list[str]:
    """Owners whose share of the exchange is asked for; with one already in it there is no room."""
    return []


@pytest.fixture
def jobs(tmp_path: Path, checks: Any, admitted: list[str]) -> Iterator[RemoteJobs]:
    exchange = FileExchange(tmp_path / "exchange")
    exchange.prepare()
    notebooks.write(tmp_path / "train.ipynb", notebooks.parameters("a = 1"), "print(a)")
    token = tmp_path / "token"
    token.write_text("ada")

    def admit(owner: str, size: int, _added: int) -> None:
        if admitted:
            raise StorageFull(f"{owner} has no room for {size} bytes.")

    def resolve(name: str) -> dict[str, Any]:
        if name != "python3":
            raise UnknownChoice(f"There is no kernel {name!r} here.")
        return {"argv": [sys.executable]}

    environment = local_environment(sys.executable)
    caller = Caller("ada", str(tmp_path), environment=environment, resolve_kernel=resolve)
    pods = PodsWithVolumes(mounted_claim(Path("/data"), "ReadOnlyMany"))
    with context_of(exchange, identities=pods) as context:
        core = replace(context.core, admit_job=admit)
        changed = replace(context, core=core, checks=checks)
        with serving(changed) as url:
            yield RemoteJobs(url, token, caller)


def test_what_the_cluster_says_is_told(jobs: RemoteJobs, checks: SlowChecks) -> None:
    found = jobs.preflight(Submission("train.ipynb", parameters={"a": 2}))
    assert found.problems == (OVER_QUOTA,)
    assert (found.isolated, found.mounts, found.image) == (True, ("/data",), OWN)
    assert [p.name for p in found.parameters] == ["a"]
    (request,) = checks.asked
    assert (request.owner, request.parameters, request.isolated) == ("ada", {"a": 2}, True)


def test_fields_of_a_newer_gateway_are_ignored() -> None:
    told = Preflight((OVER_QUOTA,), image=OWN, plan={"flavor": "small"})
    newer = {"field_of_a_newer_version": 1}
    document = {**told.to_json(), **newer}
    document["problems"] = [{**problem, **newer} for problem in document["problems"]]
    document["image"] = {**document["image"], **newer}
    assert Preflight.from_json(document) == told


def test_the_notebook_is_read_meanwhile(
    jobs: RemoteJobs, checks: SlowChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway's answer waits for the notebook here, and the notebook for the gateway."""
    checks.before.clear()

    def inspect_files(*arguments: Any) -> Preflight:
        assert checks.begun.wait(10), "the gateway is not asked meanwhile"
        checks.before.set()
        return inspect_workspace(*arguments)

    monkeypatch.setattr(f"{RemoteJobs.__module__}.inspect_files", inspect_files)
    assert jobs.preflight(Submission("train.ipynb")).problems == (OVER_QUOTA,)


def test_what_cannot_be_chosen_is_not_tried(jobs: RemoteJobs, checks: SlowChecks) -> None:
    found = jobs.preflight(Submission("train.ipynb", flavor="enormous"))
    assert [p.code for p in found.problems] == ["unknown_choice"]
    assert checks.asked == []


def test_an_exchange_without_room(jobs: RemoteJobs, admitted: list[str]) -> None:
    admitted.append("ada")
    codes = {p.code: p.blocking for p in jobs.preflight(Submission("train.ipynb")).problems}
    assert codes == {"storage_full": True, "over_quota": False}


def test_a_notebook_that_the_gateway_would_not_take(jobs: RemoteJobs, tmp_path: Path) -> None:
    """It is not sent to be refused: here it is known, too."""
    path = tmp_path / "train.ipynb"
    content = path.read_bytes().ljust((100 << 20) + 1)
    path.write_bytes(content)
    for asked in (Submission("train.ipynb"), Submission("train.ipynb", content=content)):
        problem = jobs.preflight(asked).problems[0]
        assert (problem.code, problem.blocking) == ("too_large", True)
        assert problem.message == "train.ipynb is over 100 MiB."
        with pytest.raises(TooLarge, match="is over 100 MiB"):
            jobs.submit(asked)
    assert not (tmp_path / "exchange" / BLOBS_FOLDER).exists()


KERNELS = {
    "here and in the job": ("python3", OWN, {}),
    "not in our own image": ("julia", OWN, {"no_kernel": True}),
    "on a volume only": ("python3", replace(OWN, missing_kernels=("python3",)),
                         {"no_kernel": False}),
    "in another image": ("julia", JobImage("julia:1", is_own=False), {}),
    "not in another image": ("julia", JobImage("r:1", False, ("ir",), ("julia",)),
                             {"no_kernel": False}),
}  # fmt: skip


@pytest.mark.parametrize(("kernel", "image", "expected"), KERNELS.values(), ids=KERNELS)
def test_kernels(
    jobs: RemoteJobs,
    checks: SlowChecks,
    tmp_path: Path,
    kernel: str,
    image: JobImage,
    expected: dict[str, bool],
) -> None:
    checks.found, checks.job_image = [], image
    path = tmp_path / "train.ipynb"
    path.write_text(path.read_text().replace('"python3"', f'"{kernel}"'))
    problems = jobs.preflight(Submission("train.ipynb")).problems
    assert {p.code: p.blocking for p in problems} == expected
    if image.kernels:
        assert problems[0].message == (
            "An earlier job did not find the kernel 'julia' in the image r:1. It has: ir."
        )


def test_what_was_told_is_sent_back(jobs: RemoteJobs) -> None:
    asked = Submission("train.ipynb", idempotency_key="one-dialog")
    plan = jobs.preflight(asked).plan
    assert plan is not None
    with pytest.raises(PlanChanged, match="the image"):
        jobs.submit(replace(asked, plan={**plan, "image": "another"}))
    job, is_new = jobs.submit(replace(asked, plan=plan))
    assert is_new
    changes = Changes(plan={**plan, "flavor": "another"})
    with pytest.raises(PlanChanged, match="the flavor"):
        jobs.rerun(job.name, changes)
