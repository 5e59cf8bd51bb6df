"""An idempotency key is one job's, whoever asks at the same time and whatever was killed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.domain import names
from jupyter_to_job.domain.errors import Conflict, Unavailable
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.domain.names import job_name, key_digest
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.files import KEYS
from jupyter_to_job.exchange.job_drafts import LEFTOVER_SECONDS
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from .. import notebooks
from ..held_backend import HeldBackend
from . import exchanges

SUBMISSION = Submission("train.ipynb", idempotency_key="once")


@pytest.fixture
def service(tmp_path: Path) -> JobService:
    notebooks.write(tmp_path / "workspace" / "train.ipynb", "1")
    return service_in(tmp_path, "workspace")


@pytest.fixture
def source(tmp_path: Path) -> str:
    return str(tmp_path / "workspace" / "train.ipynb")


@pytest.fixture
def key(source: str) -> str:
    """The digest of the key of `SUBMISSION`."""
    return key_digest("me", source, "once")


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    return FileExchange(tmp_path / "exchange")


def service_in(folder: Path, workspace: str) -> JobService:
    """The use cases in a workspace of its own; all have one exchange."""
    exchange = FileExchange(folder / "exchange")
    core = ServiceContext(exchange, HeldBackend(exchange, hold="queued"), load_catalog)
    return JobService(core, Caller("me", str(folder / workspace)))


def submit_concurrently(service: JobService, asked: Sequence[Submission]) -> list[str]:
    """Submit from a process each, all at the same moment; return what each came to."""
    fork = multiprocessing.get_context("fork")
    gate, answers = fork.Barrier(len(asked)), fork.SimpleQueue()

    def submit(submission: Submission) -> None:
        gate.wait()
        try:
            job, created = service.submit(submission)
            answers.put(f"{'created' if created else 'found'} {job.name}")
        except Conflict:
            answers.put("conflict")

    processes = [fork.Process(target=submit, args=(one,)) for one in asked]
    for process in processes:
        process.start()
    found = [str(answers.get()) for _ in processes]
    for process in processes:
        process.join()
    return found


def test_twenty_at_once_are_one_job(service: JobService, exchange: FileExchange) -> None:
    answers = submit_concurrently(service, [SUBMISSION] * 20)
    (name,) = exchange.jobs()
    assert sorted(answers) == [f"created {name}", *[f"found {name}"] * 19]


def test_twenty_labels_at_once_are_one_job(service: JobService, exchange: FileExchange) -> None:
    asked = [Submission("train.ipynb", name=f"n{i}", idempotency_key="once") for i in range(20)]
    answers = submit_concurrently(service, asked)
    (name,) = exchange.jobs()
    assert sorted(answers) == ["conflict"] * 19 + [f"created {name}"]


def test_a_claimant_that_was_killed_holds_nobody_up(
    service: JobService, exchange: FileExchange, key: str
) -> None:
    """It claimed the key, for another label even, and never came to record its job."""
    exchange.claim(f"{key}-1", "killed-abcd2345")
    job, created = service.submit(SUBMISSION)
    assert (job.name, created) == ("killed-abcd2345", True)
    assert service.submit(SUBMISSION) == (job, False)


def test_a_name_that_somebody_else_has(
    service: JobService, exchange: FileExchange, source: str
) -> None:
    """Another job has the name that the key comes to: the next one is drawn, by everybody alike."""
    taken = job_name(source, owner="me", key="once")
    exchanges.add(exchange, taken, notebook="other.ipynb")
    answers = submit_concurrently(service, [SUBMISSION] * 6)
    (name,) = set(exchange.jobs()) - {taken}
    assert sorted(answers) == [f"created {name}", *[f"found {name}"] * 5]


def test_notebooks_of_two_folders_are_two(tmp_path: Path, exchange: FileExchange) -> None:
    """Each keeps its job when that of the other one is deleted."""
    notebooks.write(tmp_path / "p1" / "train.ipynb", "1")
    shutil.copytree(tmp_path / "p1", tmp_path / "p2")
    services = [service_in(tmp_path, folder) for folder in ("p1", "p2")]
    first, second = (service.submit(SUBMISSION)[0].name for service in services)
    assert exchange.jobs() == {first, second}
    exchange.remove(first)
    assert services[1].submit(SUBMISSION)[0].name == second
    assert services[0].submit(SUBMISSION)[1]
    assert len(exchange.jobs()) == 2


def test_a_notebook_from_two_folders_is_one(tmp_path: Path, exchange: FileExchange) -> None:
    """So are its inputs, and the place of its result."""
    notebooks.write(tmp_path / "deep" / "train.ipynb", "1")
    for name in ("a.csv", "b.csv"):
        (tmp_path / "deep" / name).write_text("1")
    above, below = service_in(tmp_path, "."), service_in(tmp_path, "deep")
    asked = replace(SUBMISSION, inputs=("a.csv",), output="out/")
    job, _ = below.submit(asked)
    elsewhere = replace(asked, notebook="deep/train.ipynb", inputs=("deep/a.csv",))
    again, created = above.submit(replace(elsewhere, output="deep//./out/"))
    assert (again.name, again.notebook, created) == (job.name, "deep/train.ipynb", False)
    for other in (replace(elsewhere, inputs=("deep/b.csv",)), elsewhere):
        with pytest.raises(Conflict):
            above.submit(other)
    assert exchange.jobs() == {job.name}


def test_a_record_of_an_older_gateway_is_found(tmp_path: Path, service: JobService) -> None:
    """Its digest has the names of the files that were sent."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / "workspace" / name).write_text("1")
    older, _ = service.submit(replace(SUBMISSION, inputs=("a.csv",)))
    sent = {"a.csv": "0" * 64}
    asked = replace(SUBMISSION, inputs=("a.csv",), input_digests=sent)
    again, created = service.submit(asked)
    assert (again.name, created) == (older.name, False)
    with pytest.raises(Conflict):
        service.submit(replace(asked, inputs=("b.csv",)))


def test_no_free_name(
    service: JobService, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "secrets", SimpleNamespace(token_bytes=lambda _: b"aaaaa"))
    service.submit(Submission("train.ipynb"))
    with pytest.raises(Conflict, match="No free job name"):
        service.submit(Submission("train.ipynb"))
    assert len(exchange.jobs()) == 1


def test_after_a_delete_it_is_a_new_job(service: JobService, exchange: FileExchange) -> None:
    first, _ = service.submit(SUBMISSION)
    documents.write_document_once(exchange.directory(first.name) / layout.DELETE, {})
    with pytest.raises(Unavailable):
        service.submit(SUBMISSION)
    exchange.remove(first.name)
    again, created = service.submit(SUBMISSION)
    assert (again.name, created) == (first.name, True)


def test_empty_claims_are_swept_and_others_kept(
    service: JobService, exchange: FileExchange, key: str
) -> None:
    service.submit(SUBMISSION)
    exchange.claim("empty", "gone-abcd2345")
    exchange.claim("young", "coming-abcd2345")
    old = time.time() - LEFTOVER_SECONDS - 1
    for claim in ("empty", f"{key}-1"):
        os.utime(exchange.root / KEYS / claim, (old, old), follow_symlinks=False)
    exchange.remove_leftovers()
    assert {p.name for p in (exchange.root / KEYS).iterdir()} == {f"{key}-1", "young"}
