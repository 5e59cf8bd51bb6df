"""Results and artifacts come back from a gateway: to dev pods, and by couriers, over HTTP."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from job_runner.attempt.artifacts import seal_artifacts
from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.outcome import CellCounts, Outcome, write_outcome
from jupyter_to_job.agent import courier
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.controller.callers.identity import CourierPod, Identity
from jupyter_to_job.controller.couriers.delivery_files import hold_once
from jupyter_to_job.domain.errors import NotFound, Unavailable
from jupyter_to_job.domain.job import DeliveryState
from jupyter_to_job.exchange import FileExchange, patience
from jupyter_to_job.exchange.gateway import GatewayJob
from jupyter_to_job.exchange.records import DeliveryRecord, HeldRecord
from jupyter_to_job.service import delivery, publication
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller
from jupyter_to_job.workspace.publishing import sign

from ..cutting_proxy import CuttingProxy
from ..gateways import KnownPods, context_of, serving
from ..ingress import ingress
from ..processes import until
from ..unit import exchanges

NAME = "train-aaaaaaaa"
FILES = ("made.bin", "plots/a b.png", "../other/log.txt")
"""What the run created, by paths from the notebook's folder."""
COURIER = "courier of "


class KnownCouriers(KnownPods):
    """The token of a courier names its job."""

    async def authenticate(self, token: str) -> Identity:
        if token.startswith(COURIER):
            return CourierPod(token.removeprefix(COURIER), "courier-pod")
        return await super().authenticate(token)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


@pytest.fixture
def url(exchange: FileExchange) -> Iterator[str]:
    made = context_of(exchange, identities=KnownCouriers())
    with made as context, serving(context) as url:
        yield url


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sign, "_start", lambda *_: lambda _: None)
    made = tmp_path / "workspace"
    (made / "dir").mkdir(parents=True)
    (made / "dir" / "train.ipynb").write_bytes(exchanges.RESULT)
    (made / "dir" / "train.ipynb").chmod(0o640)
    return made


def end(directory: Path, folder: Path, names: tuple[str, ...] = FILES) -> None:
    """Have an isolated run that created files, as its agent and the fold leave it."""
    claim = liveness.claim_attempt(directory, len(layout.attempts(directory)) + 1)
    (claim.directory / layout.RESULT).write_bytes(exchanges.RESULT)
    for name in names:
        path = Path(os.path.normpath(folder / name)).relative_to("/")
        target = claim.directory / layout.ARTIFACTS / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(name.encode(errors="surrogateescape") * 1000)
    write_outcome(
        claim.directory,
        Outcome("succeeded", None, None, 0, CellCounts(done=0, total=0), None, exchanges.ENDED, {},
                exchanges.SHA256, seal_artifacts(claim.directory)),
    )  # fmt: skip
    claim.release()


@pytest.fixture
def job(exchange: FileExchange, workspace: Path) -> Path:
    """The directory of a job of ada's that has ended."""
    return add_ended(exchange, workspace, FILES)


def add_ended(exchange: FileExchange, workspace: Path, names: tuple[str, ...]) -> Path:
    """Record a job of ada's that has ended, and created files; return its directory."""
    source = workspace / "dir" / "train.ipynb"
    paths = {"source": str(source), "notebook": str(source).lstrip("/"), "workspace": "/"}
    directory = exchanges.add(exchange, NAME, owner="ada", isolated=True, **paths)
    end(directory, source.parent, names)
    return directory


def dev_pod(url: str, workspace: Path, owner: str = "ada") -> RemoteJobs:
    token = workspace.parent / f"token-{owner}"
    token.write_text(owner)
    return RemoteJobs(url, token, Caller(owner, str(workspace)))


def connection(url: str, workspace: Path, job: str = NAME) -> GatewayConnection:
    token = workspace.parent / f"token-of-courier-{job}"
    token.write_text(f"{COURIER}{job}")
    return GatewayConnection(url, token, job)


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def expected(workspace: Path) -> dict[str, bytes]:
    """Return what is in the workspace once all is delivered."""
    outside = str(workspace / "other" / "log.txt").lstrip("/")
    return {
        "dir/train.ipynb": exchanges.RESULT,
        f"dir/{NAME}.ipynb": exchanges.RESULT,
        f"dir/{NAME}/made.bin": b"made.bin" * 1000,
        f"dir/{NAME}/plots/a b.png": b"plots/a b.png" * 1000,
        f"dir/{NAME}/workspace/{outside}": b"../other/log.txt" * 1000,
    }


def check(exchange: FileExchange, workspace: Path) -> None:
    assert files(workspace) == expected(workspace)
    record = exchange.record(NAME, layout.DELIVERY, DeliveryRecord)
    assert record is not None and record.message is None
    inside = {str(Path("/", path).relative_to(workspace)) for path in record.artifacts}
    assert inside == set(expected(workspace)) - {"dir/train.ipynb", f"dir/{NAME}.ipynb"}
    assert record.path == str(workspace / "dir" / f"{NAME}.ipynb").lstrip("/")


@pytest.mark.usefixtures("job")
def test_a_dev_pod_gets_result_and_artifacts(
    url: str, workspace: Path, exchange: FileExchange
) -> None:
    jobs = dev_pod(url, workspace)
    found = delivery.deliver_if_pulling(jobs, jobs.get(NAME))
    assert found.delivery.state is DeliveryState.DELIVERED
    assert found.delivery.path == f"dir/{NAME}.ipynb"
    check(exchange, workspace)
    for path in (f"dir/{NAME}.ipynb", f"dir/{NAME}/made.bin"):  # as readable as their source
        assert (workspace / path).stat().st_mode & 0o777 == 0o640
    assert jobs.deliver(NAME) == found


@pytest.mark.usefixtures("job")
def test_a_courier_brings_the_same(url: str, workspace: Path, exchange: FileExchange) -> None:
    courier.deliver(connection(url, workspace), NAME, str(workspace))
    check(exchange, workspace)
    courier.deliver(connection(url, workspace), NAME, str(workspace))
    check(exchange, workspace)


@pytest.mark.usefixtures("job")
def test_many_at_once(url: str, workspace: Path, exchange: FileExchange) -> None:
    pods = [dev_pod(url, workspace) for _ in range(4)]
    connections = [connection(url, workspace) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        futures: list[Future[Any]] = [pool.submit(pod.deliver, NAME) for pod in pods]
        futures += [pool.submit(courier.deliver, c, NAME, str(workspace)) for c in connections]
        for future in futures:
            future.result()
    check(exchange, workspace)


def test_held_is_said_to_every_reader(
    url: str, workspace: Path, exchange: FileExchange, job: Path
) -> None:
    shutil.rmtree(workspace / "dir")
    jobs = dev_pod(url, workspace)
    held = jobs.deliver(NAME)
    assert held.delivery.state is DeliveryState.HELD
    assert "Make the folder again" in (held.delivery.message or "")
    assert dev_pod(url, workspace).get(NAME).delivery == held.delivery
    assert delivery.deliver_if_pulling(jobs, held) == held
    (workspace / "dir").mkdir()
    later = dev_pod(url, workspace)  # a server that is started anew takes it up
    found = delivery.deliver_if_pulling(later, later.get(NAME))
    assert found.delivery.state is DeliveryState.DELIVERED
    assert (job / layout.HELD).exists()
    assert f"dir/{NAME}/made.bin" in files(workspace)


@pytest.mark.usefixtures("job")
def test_a_courier_says_what_keeps_it(url: str, workspace: Path) -> None:
    (workspace / "dir").rename(workspace / "elsewhere")
    courier.deliver(connection(url, workspace), NAME, str(workspace))
    found = dev_pod(url, workspace).get(NAME).delivery
    assert found.state is DeliveryState.HELD
    assert "Make the folder again" in (found.message or "")


def test_an_output_elsewhere_is_left_to_who_reaches_it(
    url: str, workspace: Path, exchange: FileExchange
) -> None:
    """A command with a wider root submitted it; the server's root has a folder of that name."""
    elsewhere = workspace.parent / "elsewhere"
    for folder in (elsewhere, workspace / str(elsewhere).lstrip("/")):
        folder.mkdir(parents=True)
    source = workspace / "dir" / "train.ipynb"
    paths = {"source": str(source), "notebook": str(source).lstrip("/"), "workspace": "/"}
    output = f"{str(elsewhere).lstrip('/')}/"
    end(exchanges.add(exchange, NAME, owner="ada", output=output, **paths), source.parent)
    assert dev_pod(url, workspace).deliver(NAME).delivery.state is DeliveryState.PENDING
    assert set(files(workspace)) == {"dir/train.ipynb"}
    token = workspace.parent / "token-ada"
    wider = RemoteJobs(url, token, Caller("ada", str(workspace.parent)))
    assert wider.deliver(NAME).delivery.path == f"elsewhere/{NAME}.ipynb"
    assert f"{NAME}.ipynb" in files(elsewhere)


@pytest.mark.usefixtures("job")
def test_what_can_never_be_delivered(url: str, workspace: Path, exchange: FileExchange) -> None:
    assert delivery.hold(exchange, NAME, HeldRecord("Its dev pod is gone.", failed=True))
    found = dev_pod(url, workspace).get(NAME)
    assert (found.delivery.state, found.delivery.message) == (
        DeliveryState.FAILED,
        "Its dev pod is gone.",
    )
    assert found.decided


@pytest.mark.usefixtures("job")
def test_only_the_artifacts_are_held(url: str, workspace: Path) -> None:
    """The notebook is there, and its owner may have begun to edit it."""
    (workspace / "dir" / NAME).mkdir()
    room = workspace / "dir" / NAME
    jobs = dev_pod(url, workspace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jupyter_to_job.workspace.publishing.artifacts._copy_into", _no_room)
        held = jobs.deliver(NAME)
    assert held.delivery.state is DeliveryState.HELD
    assert f"dir/{NAME}.ipynb is there, but not what the run created" in str(held.delivery.message)
    (workspace / "dir" / f"{NAME}.ipynb").write_text("edited")
    room.rmdir()
    assert jobs.deliver(NAME).delivery.path == f"dir/{NAME}.ipynb"
    assert (workspace / "dir" / f"{NAME}.ipynb").read_text() == "edited"
    assert not (workspace / "dir" / f"{NAME}-2.ipynb").exists()
    assert f"dir/{NAME}/made.bin" in files(workspace)


def _no_room(*_: object) -> bool:
    raise OSError(28, "No space left on device")


def test_what_is_missing_is_said(url: str, workspace: Path, job: Path) -> None:
    for path in (job / "attempt-1" / layout.ARTIFACTS).rglob("made.bin"):
        path.write_bytes(b"changed")
    for path in (job / "attempt-1" / layout.ARTIFACTS).rglob("log.txt"):
        path.unlink()
    found = dev_pod(url, workspace).deliver(NAME)
    assert "Of 3 files that the run created 2 are damaged or missing" in str(found.delivery.message)
    assert set(files(workspace / "dir" / NAME)) == {"plots/a b.png"}


@pytest.mark.parametrize("by", ["dev pod", "courier"])
def test_too_many_files_are_delivered_and_not_named(
    url: str, workspace: Path, job: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway takes a delivery.json of a certain size only."""
    monkeypatch.setattr(documents, "MAX_SENT_BYTES", 600)
    if by == "dev pod":
        found = dev_pod(url, workspace).deliver(NAME)
        assert found.delivery.state is DeliveryState.DELIVERED
    else:
        courier.deliver(connection(url, workspace), NAME, str(workspace))
    assert files(workspace) == expected(workspace)
    sent = json.loads((job / layout.DELIVERY).read_bytes())
    assert sent["message"].startswith(f"3 files that the run created are in {NAME} beside it")
    assert "artifacts" not in sent


def test_a_damaged_result_is_not_published(url: str, workspace: Path, job: Path) -> None:
    (job / "attempt-1" / layout.RESULT).write_bytes(b"noise")
    found = dev_pod(url, workspace).deliver(NAME)
    assert found.delivery.state is DeliveryState.FAILED  # trying again would not help
    assert "is damaged" in str(found.delivery.message)
    assert set(files(workspace)) == {"dir/train.ipynb"}


def test_a_result_that_cannot_be_read_just_now_is_not_lost(
    url: str, workspace: Path, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = documents.open_regular

    def broken(path: Path, folder: int | None = None) -> Any:
        if path.name == layout.RESULT:
            raise OSError(errno.EIO, "Input/output error")
        return whole(path, folder)

    monkeypatch.setattr(patience, "PATIENCE", 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("job_runner.protocol.documents.open_regular", broken)
        with pytest.raises(Unavailable):
            courier.deliver(connection(url, workspace), NAME, str(workspace))
    assert not (job / layout.HELD).exists()


@pytest.mark.parametrize("piece", [layout.RESULT, layout.ARTIFACTS])
@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO])
def test_a_job_that_cannot_be_seen_just_now_is_not_gone(
    url: str,
    workspace: Path,
    exchange: FileExchange,
    job: Path,
    monkeypatch: pytest.MonkeyPatch,
    piece: str,
    number: int,
) -> None:
    look, read, failures = Path.lstat, FileExchange.open, [OSError(number, os.strerror(number))]

    def fail_once(path: Path) -> os.stat_result:
        if path == job and failures:
            raise failures.pop()
        return look(path)

    def read_in_that_moment(found: FileExchange, name: str, path: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if path.startswith(f"attempt-1/{piece}"):
                patch.setattr(Path, "lstat", fail_once)
            return read(found, name, path)

    monkeypatch.setattr(patience, "MIN_DELAY", 0.0)
    monkeypatch.setattr(FileExchange, "open", read_in_that_moment)
    courier.deliver(connection(url, workspace), NAME, str(workspace))
    assert failures == []
    check(exchange, workspace)
    assert not (job / layout.HELD).exists()


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("by", ["dev pod", "courier"])
def test_a_name_that_is_not_utf8(
    url: str, workspace: Path, exchange: FileExchange, by: str
) -> None:
    """It comes as it is: a run's files have the names that its libraries give them."""
    names = [os.fsdecode(b"caf\xe9.bin"), os.fsdecode(b"r\xe9sultats/a.bin")]
    end(exchange.directory(NAME), workspace / "dir", (*FILES, *names))
    if by == "courier":
        courier.deliver(connection(url, workspace), NAME, str(workspace))
    else:
        dev_pod(url, workspace).deliver(NAME)
    assert {p: files(workspace)[f"dir/{NAME}/{p}"] for p in names} == {
        name: name.encode(errors="surrogateescape") * 1000 for name in names
    }
    record = exchange.record(NAME, layout.DELIVERY, DeliveryRecord)
    assert record is not None and record.message is None
    assert len(record.artifacts) == len(FILES) + len(names)


def test_a_name_that_no_file_can_have(url: str, workspace: Path, job: Path) -> None:
    outcome = job / "attempt-1" / layout.OUTCOME
    document = json.loads(outcome.read_bytes())
    forged = [{"path": str(workspace / "dir" / "\ud800").lstrip("/"), "size": 1, "sha256": ""}]
    documents.write_document(outcome, {**document, "artifacts": document["artifacts"] + forged})
    found = dev_pod(url, workspace).deliver(NAME)
    assert found.delivery.state is DeliveryState.DELIVERED
    assert "were not copied: \\ud800." in str(found.delivery.message)
    assert f"dir/{NAME}/made.bin" in files(workspace)


@pytest.mark.usefixtures("job")
def test_a_publisher_that_is_killed_leaves_the_notebook_to_its_owner(
    url: str, workspace: Path
) -> None:
    """The notebook is there, and its owner edits it before another publisher brings the rest."""

    def kill(*_: object) -> bool:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jupyter_to_job.workspace.publishing.artifacts._copy_into", kill)
        with pytest.raises(KeyboardInterrupt):
            courier.deliver(connection(url, workspace), NAME, str(workspace))
    notebook = workspace / "dir" / f"{NAME}.ipynb"
    notebook.write_text("edited")
    assert dev_pod(url, workspace).deliver(NAME).delivery.path == f"dir/{NAME}.ipynb"
    assert notebook.read_text() == "edited"
    assert f"dir/{NAME}/made.bin" in files(workspace)
    assert not notebook.with_name(f"{NAME}-2.ipynb").exists()


@pytest.mark.usefixtures("job")
def test_what_is_said_later_does_not_forget_the_notebook(
    url: str, workspace: Path, exchange: FileExchange
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jupyter_to_job.workspace.publishing.artifacts._copy_into", _no_room)
        dev_pod(url, workspace).deliver(NAME)
    notebook = workspace / "dir" / f"{NAME}.ipynb"
    notebook.write_text("edited")
    delivery.hold(exchange, NAME, HeldRecord("No node took the courier."))
    courier.deliver(connection(url, workspace), NAME, str(workspace))
    assert notebook.read_text() == "edited"
    assert not notebook.with_name(f"{NAME}-2.ipynb").exists()
    assert f"dir/{NAME}/made.bin" in files(workspace)


@pytest.mark.usefixtures("job")
def test_a_large_notebook_is_not_signed_in_a_dev_pod(
    url: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing takes several times its size in memory, which ends the pod with all its kernels."""
    signed: list[object] = []

    def start(*work: object) -> Callable[[float], object]:
        signed.append(work)
        return lambda _: None

    monkeypatch.setattr(sign, "_start", start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jupyter_to_job.service.remote._sign", partial(publication.sign, max_size=9))
        found = dev_pod(url, workspace).deliver(NAME)
    assert signed == []
    assert "over 9 bytes, so it is not signed" in str(found.delivery.message)


@pytest.mark.usefixtures("job")
def test_what_came_of_it_is_told_a_gateway_that_was_away(
    url: str, workspace: Path, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are copied by then: nothing of that is done again."""
    whole, tries = GatewayJob.put, []
    monkeypatch.setattr(patience, "MIN_DELAY", 0.0)

    def breaking(self: GatewayJob, path: str, data: bytes) -> None:
        tries.append(path)
        if tries.count(path) == 1:
            raise Unavailable("It broke.")
        whole(self, path, data)

    monkeypatch.setattr(GatewayJob, "put", breaking)
    dev_pod(url, workspace).deliver(NAME)
    check(exchange, workspace)
    assert tries == 2 * [layout.PUBLISHED] + 2 * [layout.DELIVERY]


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("status", [404, 405])
@pytest.mark.parametrize("publisher", ["dev pod", "courier"])
def test_a_page_of_an_ingress_says_nothing_of_a_result(
    url: str,
    workspace: Path,
    exchange: FileExchange,
    monkeypatch: pytest.MonkeyPatch,
    publisher: str,
    status: int,
) -> None:
    """It answers for the gateway while a controller starts again."""
    monkeypatch.setattr(patience, "MIN_DELAY", 0.0)

    def is_away(request: str, pages: int) -> bool:
        return pages < 2 and ("/attempt-1/" in request or request.startswith("PUT"))

    with ingress(url, is_away, status) as proxy:
        if publisher == "dev pod":
            dev_pod(proxy.url, workspace).deliver(NAME)
        else:
            courier.deliver(connection(proxy.url, workspace), NAME, str(workspace))
    assert len(proxy.pages) == 1 + len(FILES) + 2  # the result, the files, and two reports
    check(exchange, workspace)


@pytest.mark.usefixtures("job")
def test_a_connection_that_breaks_is_taken_up(
    url: str, workspace: Path, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, offsets = GatewayJob.read, []
    monkeypatch.setattr(patience, "MIN_DELAY", 0.0)

    def breaking(self: GatewayJob, path: str, offset: int = 0) -> Any:
        offsets.append(offset)
        if path == layout.DELIVERABLE:
            yield from whole(self, path)
            return
        for chunk in whole(self, path, offset):
            yield chunk[: max(1, len(chunk) // 2)]
            if len(chunk) > 1:
                raise Unavailable("It broke.")

    monkeypatch.setattr(GatewayJob, "read", breaking)
    dev_pod(url, workspace).deliver(NAME)
    check(exchange, workspace)
    assert max(offsets) > 10


def test_a_courier_reaches_what_it_delivers_and_nothing_else(
    url: str, workspace: Path, exchange: FileExchange, job: Path
) -> None:
    other = exchanges.add(exchange, "other-aaaaaaaa", owner="ada")
    exchanges.end(other)
    record = {"v": 1, "path": "a", "sha256": "0" * 64, "time": exchanges.ENDED}
    headers = {"Authorization": f"Bearer {COURIER}{NAME}"}
    with httpx.Client(base_url=f"{url}/api/", headers=headers, timeout=60) as client:

        def status(method: str, path: str, body: Any = None) -> int:
            content = None if body is None else json.dumps(body).encode()
            return client.request(method, path, content=content).status_code

        mine, another = f"exchange/{NAME}", "exchange/other-aaaaaaaa"
        assert status("GET", f"{mine}/deliverable.json") == 200
        assert status("GET", f"{mine}/attempt-1/result.ipynb") == 200
        assert status("PUT", f"{mine}/held.json", {"v": 1, "message": "why"}) == 200
        for path in ("request.json", "snapshot.ipynb", "origin.json", "attempt-1/outcome.json"):
            assert status("GET", f"{mine}/{path}") == 403
        for path in ("attempt-1/outcome.json", "attempt-2/runner.json", "snapshot.ipynb"):
            assert status("PUT", f"{mine}/{path}", record) == 403
        assert status("POST", f"{mine}/attempt-1/artifacts/a?offset=0", {}) == 403
        for path in ("deliverable.json", "attempt-1/result.ipynb"):
            assert status("GET", f"{another}/{path}") == 404
        for path in ("delivery.json", "held.json"):
            assert status("PUT", f"{another}/{path}", record) == 404
        for path in ("jobs", f"jobs/{NAME}", f"jobs/{NAME}/notebook", "flavors", "events"):
            assert status("GET", path) == 404
        assert status("PUT", f"blobs/{'0' * 64}", {}) == 404
        for wrong in ({"v": 1}, {"v": 1, "message": ""}, {"v": 1, "message": 3}):
            assert status("PUT", f"{mine}/held.json", wrong) == 400
    assert not (other / layout.DELIVERY).exists()


@pytest.mark.usefixtures("job")
def test_nobody_reports_for_somebody_else(url: str, workspace: Path) -> None:
    eve = dev_pod(url, workspace, "eve")
    with pytest.raises(NotFound):
        eve.deliver(NAME)
    with pytest.raises(NotFound):
        eve._exchange.put(NAME, layout.HELD, b'{"v": 1, "message": "mine"}')


def test_the_last_words_of_a_courier(tmp_path: Path) -> None:
    """They are the pod's termination message; the log has them as JSON, with the job and the id."""
    words = tmp_path / "termination-log"
    variables = {"TERMINATION_LOG": str(words), "LOG_FORMAT": "json", "REQUEST_ID": "ab12"}
    env = {f"JUPYTER_TO_JOB_{name}": value for name, value in variables.items()}
    options = ["--gateway", "ftp://gateway", "--token-file", "/token", "--root", str(tmp_path)]
    command = [sys.executable, "-m", "jupyter_to_job.agent.courier", NAME, *options]
    ended = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "is no URL of a gateway" in words.read_text()
    line = json.loads(ended.stderr)
    assert (line["job"], line["request_id"], line["level"]) == (NAME, "ab12", "error")


class StallingProxy(CuttingProxy):
    """Passes on a megabyte of answers, and then nothing more: the gateway's node is gone."""

    def is_stalled(self) -> bool:
        return self.received > 1 << 20

    def _count(self, size: int, is_sent: bool) -> bool:
        is_cut = super()._count(size, is_sent)
        if not is_sent and self.is_stalled():
            threading.Event().wait()
        return is_cut


def test_a_courier_that_is_told_to_end_leaves_no_draft(
    url: str, workspace: Path, exchange: FileExchange
) -> None:
    add_ended(exchange, workspace, tuple(f"{number:0200}" for number in range(10)))
    proxy = StallingProxy(url)
    token = workspace.parent / "token"
    token.write_text(f"{COURIER}{NAME}")
    options = ["--gateway", proxy.url, "--token-file", str(token), "--root", "/"]
    command = [sys.executable, "-m", "jupyter_to_job.agent.courier", NAME, *options]
    with subprocess.Popen(command) as process:
        until(proxy.is_stalled, "a part of the files has come")
        assert list(workspace.rglob(".jupyter-to-job-*"))
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(workspace.rglob(".jupyter-to-job-*"))


def test_a_courier_waits_for_a_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "MIN_RETRY_DELAY", 0.0)
    answers: list[Exception | None] = [Unavailable("It is away."), Unavailable("Still."), None]

    def act() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    courier.with_patience(act)
    assert answers == []
    with pytest.raises(Unavailable):
        courier.with_patience(lambda: _raise(Unavailable("It is away.")), patience=0.0)


def test_its_patience_begins_with_the_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large result is copied for longer than a gateway may be away."""
    clock, tries = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def act() -> None:
        tries.append(clock[0])
        clock[0] += 600
        if len(tries) == 1:
            raise Unavailable("It is away.")

    courier.with_patience(act)
    assert tries == [0, 600]


def _raise(error: Exception) -> None:
    raise error


def test_a_held_job_tells_more_than_one_word(job: Path, exchange: FileExchange) -> None:
    """The reason changes with the obstacle; a reason that is known is not written again."""
    assert hold_once(exchange, NAME, HeldRecord("No node took the courier."))
    assert not hold_once(exchange, NAME, HeldRecord("No node took the courier."))
    assert hold_once(exchange, NAME, HeldRecord("The volume claim is gone."))
    exchanges.deliver(job)
    assert not hold_once(exchange, NAME, HeldRecord("Too late."))
