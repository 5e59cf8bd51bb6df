"""Which jobs of a group the reconciler lets begin: also of one that has just started."""

from __future__ import annotations

from jupyter_to_job.controller.reconciling.group_limits import GroupLimits
from jupyter_to_job.controller.reconciling.job_files import JobFiles
from jupyter_to_job.controller.reconciling.next_step import AttemptObservation
from jupyter_to_job.domain.job import DeliveryState, State
from jupyter_to_job.domain.state import AttemptStatus, Ended
from jupyter_to_job.exchange import Request
from jupyter_to_job.exchange.records import ClusterJob

from . import exchanges


def request(name: str, limit: int | None = 2, owner: str = "team/ada") -> Request:
    return exchanges.request(name, owner=owner, group="night", group_limit=limit, submitted=name)


def files(of: Request, *, has_job: bool = True, has_ended: bool = False) -> JobFiles:
    job = ClusterJob("team", of.name, "uid") if has_job else None
    ended = Ended(State.SUCCEEDED, None, None, "")
    attempts = (
        (AttemptObservation(AttemptStatus(1, False, ended=ended), "pod"),) if has_ended else ()
    )
    pending = DeliveryState.PENDING
    return JobFiles(of, {}, False, False, None, job, attempts, None, (), pending)


def test_the_oldest_begins_when_one_ends() -> None:
    woken: list[str] = []
    limits = GroupLimits(woken.append)
    limits.begin([])
    jobs = [request(name) for name in "abcde"]
    assert [limits.held_back(job) is None for job in jobs] == [True, True, False, False, False]
    assert limits.held_back(jobs[0]) is None  # it is looked at again
    placement = limits.held_back(jobs[4])
    assert placement is not None and placement.reason == "GroupLimit"
    assert placement.message is not None and "2 jobs of the group night" in placement.message
    assert limits.held_back(request("z", owner="team/bob")) is None
    limits.note(files(jobs[1], has_ended=True))
    limits.note(files(jobs[1], has_ended=True))  # the same end again makes no room
    assert woken == ["c"]
    assert limits.held_back(jobs[2]) is None
    assert limits.held_back(jobs[3]) is not None
    limits.release("a")  # deleted
    assert woken == ["c", "d"]
    limits.release("c", was_refused=True)  # by the cluster, as it may refuse the next one
    assert woken == ["c", "d"] and limits.held_back(jobs[4]) is None


def test_a_controller_that_starts_looks_at_every_job_first() -> None:
    woken: list[str] = []
    limits = GroupLimits(woken.append)
    old, waiting = request("a", 1), request("b", 1)
    assert limits.held_back(waiting) is not None  # nothing was listed yet
    limits.begin(["a", "b", "other-group"])
    limits.saw("b")
    assert limits.held_back(waiting) is not None
    limits.note(files(old))
    limits.saw("a")
    assert woken == []
    limits.saw("other-group")
    assert woken == ["b"]
    assert limits.held_back(waiting) is not None  # the old one runs
    limits.note(files(old, has_ended=True))
    assert woken == ["b", "b"]
    assert limits.held_back(waiting) is None


def test_only_its_own_group_waits_for_a_namespace_that_cannot_be_watched() -> None:
    woken: list[str] = []
    limits = GroupLimits(woken.append)
    limits.begin(["a"])
    limits.note(files(request("a"), has_job=False), is_known=False)
    limits.saw("a")
    assert limits.held_back(request("b", owner="team/bob")) is None
    assert limits.held_back(request("b")) is not None
    limits.release("a")  # deleted
    assert woken == ["b"] and limits.held_back(request("b")) is None


def test_jobs_without_a_limit_count_for_the_others() -> None:
    limits = GroupLimits(str)
    limits.begin([])
    assert limits.held_back(request("a", None)) is None
    assert limits.held_back(request("b", 1)) is not None
    assert limits.held_back(exchanges.request("alone-aaaaaaaa")) is None
