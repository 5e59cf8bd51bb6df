"""The use cases over REST: a workspace, a real gateway, and runs that only print."""

from __future__ import annotations

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.controller.intake.budgets import BLOBS_FOLDER
from jupyter_to_job.controller.jobs import GatewayJobs
from jupyter_to_job.domain.errors import (
    BadInput,
    Cleared,
    Conflict,
    NotFound,
    Refused,
    Unavailable,
    Withdrawn,
)
from jupyter_to_job.domain.job import Changes, ClusterEvent, Job, Submission
from jupyter_to_job.domain.sweep import Run
from jupyter_to_job.domain.transfer import Transfer, Transfers
from jupyter_to_job.exchange import FileExchange, patience
from jupyter_to_job.exchange.gateway import Gateway, json_of
from jupyter_to_job.exchange.retention import Policy, enforce
from jupyter_to_job.service.jobs import JobService
from jupyter_to_job.service.port import Page, all_jobs
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller, local_environment

from .. import notebooks
from ..gateways import context_of, serving


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


@pytest.fixture
def url(exchange: FileExchange) -> Iterator[str]:
    """A gateway in a thread of its own."""
    with context_of(exchange) as context, serving(context) as address:
        yield address


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    notebooks.write(folder / "dir" / "train.ipynb", notebooks.parameters("a = 1"), "print('# x')")
    (folder / "data.csv").write_text("then")
    return folder


def remote(
    url: str,
    workspace: Path,
    owner: str = "ada",
    results: str = "",
    *,
    only_inside: bool = False,
) -> RemoteJobs:
    token = workspace.parent / f"token-{owner}"
    token.write_text(owner)
    environment = local_environment(sys.executable)
    caller = Caller(
        owner,
        str(workspace),
        environment=environment,
        resolve_kernel=lambda _: {"argv": [sys.executable]},
        results=results,
    )
    return RemoteJobs(url, token, caller, only_inside=only_inside)


@pytest.fixture
def jobs(url: str, workspace: Path) -> RemoteJobs:
    return remote(url, workspace)


@pytest.fixture
def ended_job(jobs: RemoteJobs) -> Job:
    asked = Submission("dir/train.ipynb", parameters={"a": 2}, inputs=("data.csv",))
    return jobs.deliver(jobs.submit(asked)[0].name)


def test_rerun(jobs: RemoteJobs, ended_job: Job, workspace: Path, exchange: FileExchange) -> None:
    (workspace / "data.csv").write_text("now")
    (workspace / "results").mkdir()
    changes = Changes(parameters={"b": None}, output="results", idempotency_key="again")
    again = jobs.rerun(ended_job.name, changes)
    assert jobs.rerun(ended_job.name, changes).name == again.name != ended_job.name
    assert (again.notebook, again.parameters) == ("dir/train.ipynb", {"a": 2, "b": None})
    assert exchange.request(again.name).environment == exchange.request(ended_job.name).environment
    packages = exchange.request(ended_job.name).packages  # the dev pod's, not the gateway's own
    assert packages is not None and "zmq" in packages["pyzmq"]
    assert exchange.request(again.name).packages == packages
    (item,) = exchange.request(again.name).inputs
    assert exchange.read(again.name, f"inputs/{item.path}") == b"then"
    assert jobs.deliver(again.name).delivery.path == f"results/{again.name}.ipynb"
    named = jobs.rerun(ended_job.name, Changes(name="mine"))
    assert named.name.startswith("mine-")
    assert jobs.rerun(named.name, Changes(unset=("name",))).name.startswith("train-")
    with pytest.raises(BadInput):
        jobs.rerun(ended_job.name, Changes(output="../outside"))


def test_a_folder_that_settings_choose(jobs: RemoteJobs, url: str, workspace: Path) -> None:
    """A gateway does not take it for the user's own wish."""
    asked = Submission("dir/train.ipynb", results="results/{notebook}")
    found = jobs.preflight(asked)
    assert found.results == "dir/results/train/"
    assert all(not problem.blocking for problem in found.problems)
    job = jobs.deliver(jobs.submit(asked)[0].name)
    assert job.delivery.path == f"dir/results/train/{job.name}.ipynb"
    assert job.asked and (job.output, job.asked.output) == ("dir/results/train/", None)
    again = jobs.rerun(job.name, Changes())
    assert again.asked and (again.output, again.asked.output) == (job.output, None)
    again = jobs.rerun(job.name, Changes(results="/all/{notebook}"))
    assert again.asked and (again.output, again.asked.output) == ("all/train/", None)
    own = jobs.submit(replace(asked, output="own.ipynb"))[0]
    assert own.asked and (own.output, own.asked.output) == ("own.ipynb", "own.ipynb")
    assert jobs.rerun(own.name, Changes(results="/unused")).output == "own.ipynb"
    assert not (workspace / "unused").exists()
    moved = jobs.rerun(own.name, Changes(results="/all", unset=("output",)))
    assert (moved.output, (workspace / "all").is_dir()) == ("all/", True)
    again = remote(url, workspace, results="/of/{notebook}").rerun(job.name, Changes())
    assert again.asked and (again.output, again.asked.output) == ("of/train/", None)
    with pytest.raises(BadInput, match="no folder for results"):
        jobs.submit(replace(asked, results="{name}/"))


def test_a_sweep_is_frozen_once(
    jobs: RemoteJobs, workspace: Path, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Submission(
        "dir/train.ipynb", inputs=("data.csv",), group="night", group_limit=2, idempotency_key="k"
    )
    runs = [Run({"a": number}) for number in range(3)]
    repeated = [job.name for job in jobs.sweep(asked, runs[:1])]
    sweep = jobs.sweep(asked, runs)
    first = next(sweep)
    notebooks.write(workspace / "dir" / "train.ipynb", "'edited meanwhile'")
    (workspace / "data.csv").write_text("now")
    made = [first, *sweep]
    assert repeated == [first.name] and len({job.name for job in made}) == 3
    assert [job.parameters for job in made] == [{"a": 0}, {"a": 1}, {"a": 2}]
    requests = [exchange.request(job.name) for job in made]
    assert len({r.snapshot_sha256 for r in requests}) == len({r.inputs for r in requests}) == 1
    assert {(r.group, r.group_limit) for r in requests} == {("night", 2)}

    other = jobs.submit(Submission("dir/train.ipynb"))[0]
    assert other.group is None
    again = jobs.submit(Submission("dir/train.ipynb", group="day", rerun_of=other.name))[0]
    assert (again.group, again.rerun_of) == ("day", other.name)
    names = [job.name for job in made[::-1]]
    assert [job.name for job in all_jobs(jobs, group="night")] == names

    def find_as_before(self: GatewayJobs, *arguments: Any, **_: Any) -> Page:
        return JobService.find(self, *arguments)

    monkeypatch.setattr(GatewayJobs, "find", find_as_before)  # an older one knows no groups
    assert [job.name for job in all_jobs(jobs, group="night")] == names


def test_a_sweep_that_is_withdrawn_ends(jobs: RemoteJobs) -> None:
    transfer = Transfer()
    transfer.expect_jobs(3)
    sweep = jobs.sweep(Submission("dir/train.ipynb"), [Run({"a": n}) for n in range(3)], transfer)
    made = next(sweep)
    assert transfer.withdraw()
    with pytest.raises(Withdrawn):
        next(sweep)
    assert [job.name for job in all_jobs(jobs)] == [made.name]

    transfer = Transfer()
    jobs.submit(Submission("dir/train.ipynb"), transfer)
    assert not transfer.withdraw()


def test_all_requests_of_a_submission_are_withdrawn() -> None:
    """A page sends again what a proxy gave up, while the first request is still under way."""
    transfers = Transfers()
    with transfers.track("k") as first:
        first.confirm()
        with pytest.raises(Withdrawn), transfers.track("k") as second:
            with pytest.raises(Conflict):
                transfers.withdraw("k")
            with pytest.raises(Unavailable):
                first.check_repetition()
            second.confirm()


def test_an_older_gateway_that_answers_with_all_jobs(
    jobs: RemoteJobs, ended_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first version knew no names in the query, and its newest job passed for the one asked."""
    newest = jobs.submit(Submission("dir/train.ipynb"))[0]
    call = Gateway.call

    def call_of_before(gateway: Gateway, *route: str, **arguments: Any) -> httpx.Response:
        arguments.get("params", {}).pop("name", None)
        return call(gateway, *route, **arguments)

    monkeypatch.setattr(Gateway, "call", call_of_before)
    assert [jobs.get(job.name).name for job in (newest, ended_job)] == [newest.name, ended_job.name]
    with pytest.raises(NotFound, match="no job 'train-aaaaaaaa'"):
        jobs.get("train-aaaaaaaa")


def test_a_priority_without_a_line_is_refused(
    jobs: RemoteJobs, ended_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryBackend, "has_queue", False)
    with pytest.raises(Refused, match="no line"):
        jobs.rerun(ended_job.name, Changes(priority=1))


def test_journal_and_logs(jobs: RemoteJobs, ended_job: Job) -> None:
    whole = jobs.journal(ended_job.name)
    assert (whole.next, whole.end) == (ended_job.journal, True)
    last = jobs.journal(ended_job.name, -200)
    assert last.records == whole.records[-len(last.records) :] != whole.records
    assert "# x" in jobs.logs(ended_job.name, -(10**6)).text


def test_fields_of_a_newer_gateway_are_ignored(
    jobs: RemoteJobs, ended_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = (jobs.logs, jobs.journal)
    before = [read(ended_job.name) for read in reads]

    def json_of_a_newer_one(response: httpx.Response) -> Any:
        return {**json_of(response), "field_of_a_newer_version": 1}

    monkeypatch.setattr(f"{RemoteJobs.__module__}.json_of", json_of_a_newer_one)
    assert [read(ended_job.name) for read in reads] == before


def test_looking_is_no_work_for_the_reconciler(
    jobs: RemoteJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = jobs.submit(Submission("dir/train.ipynb"))[0].name
    poked: list[str] = []
    monkeypatch.setattr(MemoryBackend, "notify", lambda _, *jobs: poked.extend(jobs))
    assert not jobs.get(name).decided
    assert [job.name for job in jobs.find().jobs] == [name]
    assert poked == []


class PretendEvents:
    """Knows one event of every job, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def of(self, name: str) -> tuple[ClusterEvent, ...]:
        self.asked.append(name)
        return (ClusterEvent("2026-01-02T03:04:05.000Z", "FailedScheduling", "no room"),)


def test_the_events_of_a_job_are_asked_for_one_at_a_time(
    exchange: FileExchange, workspace: Path
) -> None:
    """Many wait for jobs, and look at lists: none of them needs the cluster for that."""
    events: Any = PretendEvents()
    with (
        context_of(exchange) as context,
        serving(replace(context, events=events)) as url,
    ):
        jobs = remote(url, workspace)
        name = jobs.submit(Submission("dir/train.ipynb"))[0].name
        assert jobs.get(name).events is None
        assert [job.events for job in jobs.find().jobs] == [None]
        assert events.asked == []
        (event,) = jobs.details(name).events or ()
        assert (event.reason, event.message) == ("FailedScheduling", "no room")
        assert replace(jobs.details(name), events=None) == jobs.get(name)
        with pytest.raises(NotFound):
            remote(url, workspace, "eve").details(name)
        assert events.asked == [name, name]
        for ask in (jobs.get, jobs.details):
            for nobody in ("no-such-job", "train-aaaaaaaa"):
                with pytest.raises(NotFound):
                    ask(nobody)


def test_preflight_knows_both_sides(jobs: RemoteJobs) -> None:
    asked = Submission(
        "dir/train.ipynb", flavor="enormous", inputs=("data.csv",), parameters={"typo": 1}
    )
    found = jobs.preflight(asked)
    assert {p.code: p.blocking for p in found.problems} == {
        "unknown_parameter": False,
        "unknown_choice": True,
    }
    assert [p.name for p in found.parameters] == ["a"]
    assert [i.path for i in found.inputs] == ["data.csv"]
    assert found.isolated


@pytest.mark.parametrize("name", ["../flavors", "", ".", "train-abcd2345/logs", "a?limit=1", "é"])
def test_what_is_no_name_reaches_no_other_route(jobs: RemoteJobs, name: str) -> None:
    for act in (jobs.get, jobs.cancel, jobs.delete, jobs.logs, jobs.journal, jobs.notebook):
        with pytest.raises(NotFound):
            act(name)


def test_an_open_document(jobs: RemoteJobs, workspace: Path, exchange: FileExchange) -> None:
    content = (workspace / "dir" / "train.ipynb").read_bytes().replace(b"# x", b"# edited")
    job, _ = jobs.submit(Submission("dir/train.ipynb", content=content))
    assert exchange.read(job.name, "snapshot.ipynb") == content


def test_a_gateway_that_goes_away_when_all_is_sent(
    jobs: RemoteJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the files, so another one is starting: that is waited for."""
    call = Gateway.call
    failures: list[str] = []

    def fail(gateway: Gateway, method: str, path: str, **arguments: Any) -> Any:
        if path == "jobs" and len(failures) < 5:
            failures.append(path)
            raise Unavailable("The gateway cannot be reached.")
        return call(gateway, method, path, **arguments)

    monkeypatch.setattr(Gateway, "call", fail)
    monkeypatch.setattr(patience, "MIN_DELAY", 0.01)
    assert jobs.submit(Submission("dir/train.ipynb"))[1]
    assert len(failures) == 5


def test_what_is_not_utf8_is_refused_by_name(
    jobs: RemoteJobs, ended_job: Job, workspace: Path
) -> None:
    """A run on this machine could have it: names of files are bytes here."""
    asked = Submission("dir/train.ipynb", parameters={"deep": [{"\ud800": 1}]})
    for act in (jobs.submit, jobs.preflight):
        with pytest.raises(BadInput, match="The parameter deep is not UTF-8"):
            act(asked)
    for changes, says in (
        (Changes(env={"SECRET": "\udce9"}), "^The variable SECRET is not UTF-8"),
        (Changes(output="caf\udce9/"), r"The output caf\\udce9/ is not UTF-8"),
        (Changes(idempotency_key="once more"), "printable characters of ASCII"),
        (Changes(idempotency_key=""), "1 to 200 printable characters"),
    ):
        with pytest.raises(BadInput, match=says):
            jobs.rerun(ended_job.name, changes)
    (workspace / "caf\udce9.csv").write_text("1")
    problem = jobs.preflight(Submission("dir/train.ipynb", inputs=("*.csv",))).problems[-1]
    assert problem.blocking and r"The input caf\udce9.csv is not UTF-8" in problem.message
    with pytest.raises(BadInput, match=r"cannot be sent a text with '\\udce9'"):
        jobs.find(notebook="caf\udce9.ipynb")


def test_an_empty_key_is_refused_before_anything_is_sent(
    jobs: RemoteJobs, exchange: FileExchange
) -> None:
    asked = Submission("dir/train.ipynb", idempotency_key="")
    with pytest.raises(BadInput, match="1 to 200 printable characters"):
        jobs.submit(asked)
    with pytest.raises(BadInput, match="key is empty"):
        list(jobs.sweep(asked, [Run({"a": 1})]))
    assert not list((exchange.root / BLOBS_FOLDER).glob("*/*"))


def test_no_room_for_what_is_fetched(
    jobs: RemoteJobs, ended_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w+b", buffering=0) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
        with pytest.raises(Unavailable, match="cannot be fetched: No space left"):
            jobs.notebook(ended_job.name)


def test_cleared_and_unknown(
    jobs: RemoteJobs, ended_job: Job, url: str, workspace: Path, exchange: FileExchange
) -> None:
    enforce(exchange, Policy(0), time.time() + 1)
    with pytest.raises(Cleared, match="gone since"):
        jobs.rerun(ended_job.name, Changes())
    with pytest.raises(Cleared):
        jobs.journal(ended_job.name)
    with pytest.raises(NotFound) as caught:
        remote(url, workspace, "eve").rerun(ended_job.name, Changes())
    assert not isinstance(caught.value, Cleared)


def test_changes_of_jobs_outside_are_not_told(url: str, workspace: Path) -> None:
    everywhere, inside = remote(url, workspace), remote(url, workspace / "dir", only_inside=True)
    notebooks.write(workspace / "other.ipynb", "1")
    other = everywhere.submit(Submission("other.ipynb"))[0]
    all_changes = everywhere.changes()
    assert next(change.name for change in all_changes if change) == other.name
    # While a stream is open another one begins with the same job, after a heartbeat.
    assert list(islice(inside.changes(), 3)) == [None] * 3
    own = inside.submit(Submission("train.ipynb"))[0]
    assert next(change.name for change in inside.changes() if change) == own.name


def test_an_input_is_sent_in_pieces(
    jobs: RemoteJobs, workspace: Path, exchange: FileExchange
) -> None:
    size = 300 << 20
    with (workspace / "large.bin").open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        job, _ = jobs.submit(Submission("dir/train.ipynb", inputs=("large.bin",)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Of the gateway, which is in this process, and of the client.
    assert peak < 20 << 20
    request = exchange.request(job.name)
    assert [item.size for item in request.inputs] == [size]
