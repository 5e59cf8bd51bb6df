"""What an owner sees and asks for of a job that has a Job on a cluster."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from kubernetes.aio import client

from job_runner.attempt.finish import finish_job
from job_runner.protocol import documents, layout
from jupyter_to_job.backends.kubernetes import KubernetesBackend
from jupyter_to_job.controller.cluster.api_errors import translate_errors
from jupyter_to_job.domain.errors import BadInput, JobsError, NotFound, Refused
from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.records import ClusterJob
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from . import exchanges

JOB = "train-abcdefgh"
PULLING = Placement(starting=True, reason="ImageUnavailable", message="It is not there.")


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange", is_private=False)
    request = exchanges.request(JOB, backend="kubernetes", owner="me")
    assert found.create(request, exchanges.RESULT, origin={"namespace": "team"})
    found.write(JOB, layout.JOB, asdict(ClusterJob("team", JOB, "job-1")))
    return found


@pytest.fixture
def poked() -> list[str]:
    return []


@pytest.fixture
def jobs(exchange: FileExchange, poked: list[str]) -> JobService:
    backend = KubernetesBackend(poked.append, lambda _: PULLING)
    context = ServiceContext(exchange, backend, load_catalog)
    return JobService(context, Caller("me", "/", sees_workspace=False), wake=lambda *_: None)


def test_a_claimed_attempt_says_what_keeps_it(exchange: FileExchange, jobs: JobService) -> None:
    """Its agent is there, and the notebook's image is not."""
    attempt = exchange.directory(JOB) / "attempt-1"
    attempt.mkdir()
    documents.write_document(attempt / layout.RUNNER, {"pod": "pod-1"})
    for job in (jobs.get(JOB), *jobs.find().jobs):
        assert (job.state, job.reason, job.message) == (
            State.STARTING,
            "ImageUnavailable",
            "It is not there.",
        )


def test_the_job_of_an_ended_job_is_deleted_first(
    exchange: FileExchange, jobs: JobService, poked: list[str]
) -> None:
    """The controller removes the directory with the last that tells of the Job."""
    finish_job(exchange.directory(JOB), "Lost", "It was lost.")
    documents.write_document(exchange.directory(JOB) / "attempt-1" / layout.POD, {
        "uid": "", "node": None, "reason": None, "message": None, "time": "", "retried": False,
    })  # fmt: skip
    assert jobs.get(JOB).state.final
    jobs.delete(JOB)
    assert poked == [JOB]
    assert exchange.has(JOB, layout.DELETE) and not exchange.has(JOB, layout.CANCEL)
    with pytest.raises(NotFound):
        jobs.get(JOB)
    assert jobs.find().jobs == []


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (403, "exceeded quota: gpus", Refused),
        (400, 'admission webhook "limits.example" denied the request: too large', Refused),
        (422, "ValidatingAdmissionPolicy 'gpus' with binding 'gpus' denied request: no", Refused),
        (422, "spec.template: Invalid value", BadInput),
        (404, "namespaces not found", NotFound),
    ],
)
def test_a_policy_may_change_its_mind(status: int, message: str, kind: type[JobsError]) -> None:
    error = client.ApiException(status=status, reason="")
    error.body = json.dumps({"kind": "Status", "message": message})
    with pytest.raises(kind, match=f"{status}: "), translate_errors():
        raise error
