"""Looking at jobs, ending and forgetting them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from jupyter_to_job.domain.errors import NotFound
from jupyter_to_job.domain.job import DeliveryState, Job, State
from jupyter_to_job.service.delivery import deliver_if_pulling

from .. import notebooks
from .place import Place


@pytest.mark.core
def test_cancel_of_a_queued_job(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="queued")
    job = place.held_job()
    assert (job.position, job.started) == (1 if place.has_queue else None, None)
    place.service.cancel(job.name)
    ended = place.decided(job.name)
    assert (ended.state, ended.reason) == (State.CANCELLED, None)
    assert not ended.cancel_requested
    assert ended.delivery.state is DeliveryState.NONE
    assert not (place.workspace / "dir" / f"{job.name}.ipynb").exists()


@pytest.mark.core
def test_cancel_of_a_running_job(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="running")
    job = place.held_job()
    assert place.service.get(job.name).started is not None
    place.service.cancel(job.name)
    ended = place.decided(job.name)
    assert (ended.state, ended.reason) == (State.CANCELLED, None)
    assert ended.delivery.state is DeliveryState.DELIVERED
    assert "# kept" in notebooks.printed(place.result(ended))


@pytest.mark.core
def test_a_job_that_has_ended_cannot_be_cancelled(shared: Place) -> None:
    place, ended = shared, shared.the_job()
    assert place.service.cancel(ended.name) == ended
    assert place.exchange.document(ended.name, "cancel.json") is None


@pytest.mark.core
def test_delete_of_an_ended_job(place: Place) -> None:
    ended = place.decided(place.submit().name)
    place.service.delete(ended.name)
    for act in (place.service.get, place.service.cancel, place.service.delete, place.service.logs):
        with pytest.raises(NotFound):
            act(ended.name)
    assert place.service.find().jobs == []
    place.until(lambda: not place.exchange.jobs(), "the job is forgotten")
    assert "# kept" in notebooks.printed(place.result(ended))


@pytest.mark.core
@pytest.mark.parametrize("hold", ["queued", "running"])
def test_delete_of_an_active_job(make_place: Callable[..., Place], hold: str) -> None:
    place = make_place(hold=hold)
    job = place.held_job()
    place.service.delete(job.name)
    with pytest.raises(NotFound):  # nobody sees it any more, though it may take a while to end
        place.service.get(job.name)
    assert job.name not in [j.name for j in place.service.find().jobs]
    place.until(lambda: job.name not in place.exchange.jobs(), "the job is forgotten")
    assert not (place.workspace / "dir" / f"{job.name}.ipynb").exists()


def test_newest_first_in_pages(place: Place) -> None:
    names = [place.submit().name for _ in range(3)]
    for name in names:
        place.decided(name)
    whole = place.service.find()
    assert whole.next is None
    order = [(j.submitted, j.name) for j in whole.jobs]
    assert order == sorted(order, reverse=True)
    assert {j.name for j in whole.jobs} == set(names)
    seen: list[Job] = []
    page = place.service.find(limit=2)
    while page.next is not None:
        assert len(page.jobs) == 2
        seen += page.jobs
        page = place.service.find(limit=2, cursor=page.next)
    assert seen + page.jobs == whole.jobs


@pytest.mark.core
def test_find_by_state(shared: Place) -> None:
    job = shared.the_job()
    assert shared.service.find([State.SUCCEEDED]).jobs == [job]
    assert shared.service.find([State.FAILED, State.QUEUED]).jobs == []


@pytest.mark.core
def test_somebody_elses_job_is_not_there(shared: Place) -> None:
    job = shared.the_job()
    other = shared.service_of("someone else")
    assert other.find().jobs == []
    for act in (other.get, other.cancel, other.delete, other.deliver, other.logs, other.notebook):
        with pytest.raises(NotFound):
            act(job.name)
    assert shared.the_job() == job


@pytest.mark.core
@pytest.mark.parametrize("name", ["no-such-job-abcd2345", "../exchange", "", ".dispatcher", "a/b"])
def test_no_such_job(shared: Place, name: str) -> None:
    with pytest.raises(NotFound):
        shared.service.get(name)


@pytest.mark.core
def test_logs_go_on_from_an_offset(shared: Place) -> None:
    place, name = shared, shared.the_job().name
    whole = place.service.logs(name)
    assert "# kept" in whole.text and whole.end
    rest = place.service.logs(name, whole.next)
    assert (rest.text, rest.next) == ("", whole.next)
    assert place.service.get(name).journal == whole.next


@pytest.mark.core
def test_the_journal_by_offsets(shared: Place) -> None:
    place, job = shared, shared.the_job()
    whole = place.service.journal(job.name)
    assert (whole.next, whole.end) == (job.journal, True)
    kinds = [record["k"] for record in whole.records]
    assert {"prepared", "cell_start", "output", "cell_end"} <= set(kinds)
    assert place.service.journal(job.name, whole.next).records == []
    last = place.service.journal(job.name, -(whole.next // 2))
    assert 0 < len(last.records) < len(kinds)
    assert last.records == whole.records[-len(last.records) :]
    assert place.service.journal(job.name, -(10**9)) == whole
    assert place.service.logs(job.name, -(10**9)) == place.service.logs(job.name)


@pytest.mark.core
def test_what_exists_so_far(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="running")
    job = place.held_job()
    so_far = json.load(place.service.notebook(job.name).file)
    assert "# kept" in str(so_far["cells"])
    assert not place.service.journal(job.name).end
    place.service.cancel(job.name)
    place.decided(job.name)


@pytest.mark.core
def test_higher_priority_is_ahead_in_line(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="queued")
    if not place.has_queue:
        pytest.skip("jobs of this backend wait in no queue of its own")
    first = place.held_job()
    last, ahead = place.submit(priority=-1), place.submit(priority=1)
    places = {j.name: j.position for j in place.service.find([State.QUEUED]).jobs}
    assert places == {ahead.name: 1, first.name: 2, last.name: 3}
    assert [place.service.get(n).position for n in (ahead.name, last.name)] == [1, 3]


@pytest.mark.core
def test_no_result_yet(make_place: Callable[..., Place]) -> None:
    place = make_place(hold="queued")
    with pytest.raises(NotFound):
        place.service.notebook(place.held_job().name)


@pytest.mark.core
def test_the_feed_tells_until_it_is_delivered(place: Place) -> None:
    feed = place.service.changes()
    assert next(feed) is None
    name = place.submit().name
    seen = list[Job]()
    for job in feed:
        if job is not None:
            assert isinstance(job, Job)
            assert job.name == name
            seen.append(job)
            deliver_if_pulling(place.service, job)
            if job.decided:
                break
    assert len(seen) == len(set(map(repr, seen)))
    assert seen[-1].delivery.state is DeliveryState.DELIVERED
    later = place.service.changes()
    assert next(later) is None  # what is delivered is no news to who looks later


def test_one_damaged_job_does_not_hide_the_others(place: Place) -> None:
    damaged, other = place.submit().name, place.submit().name
    for name in (damaged, other):
        place.decided(name)
    (place.exchange.directory(damaged) / "request.json").write_text("{")
    jobs = {job.name: job.reason for job in place.service.find().jobs}
    assert jobs == {damaged: "Damaged", other: None}
    assert next(place.service.changes()) is None


def test_files_are_private(shared: Place) -> None:
    place = shared
    open_to_others = [
        p for p in place.exchange.root.rglob("*")
        if ".dispatcher" not in p.parts and p.stat().st_mode & 0o077
    ]  # fmt: skip
    assert open_to_others == []
    assert place.exchange.root.stat().st_mode & 0o077 == 0
