"""Jobs of a flavor with a queue, with Kueue and without: none waits without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_to_job.controller.cluster import api_groups, informer
from jupyter_to_job.controller.reconciling import reconciler as reconciler_module
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.exchange import FileExchange

from .test_watches import ApiServer, add_job, reconciling, until

NAME = "queued-aaaaaaaa"
KUEUE = "kueue.x-k8s.io"
QUEUED = {"flavor_spec": {"cpu": 1, "memory": "1Gi", "queue": "gpus"}}


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileExchange:
    monkeypatch.setattr(api_groups, "READ_INTERVAL", 0.1)
    monkeypatch.setattr(informer, "MIN_RETRY_DELAY", 0.05)
    monkeypatch.setattr(reconciler_module, "RESYNC_INTERVAL", 0.2)
    exchange = FileExchange(tmp_path / "jobs")
    exchange.prepare()
    add_job(exchange, NAME, "good", **QUEUED)
    return exchange


def why(reconciler: Reconciler) -> str:
    """Return why the job waits."""
    placement = reconciler.placement_of(NAME)
    return (placement.message or "") if placement is not None else ""


async def test_a_job_without_kueue_is_held_back_until_it_is_there(
    jobs: FileExchange, tmp_path: Path
) -> None:
    server = ApiServer()
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: "this cluster has no Kueue" in why(reconciler))
        placement = reconciler.placement_of(NAME)
        assert placement is not None and placement.reason == "BackendError"
        assert server.created == []

        server.groups.append(KUEUE)
        await until(lambda: server.created)
        (job,) = server.jobs["good"]
        assert job["spec"]["suspend"] is True
        await until(lambda: why(reconciler) == "It waits in the queue 'gpus' of Kueue.")

        server.groups.remove(KUEUE)  # Kueue was uninstalled
        await until(lambda: "no Kueue by now" in why(reconciler))

        server.groups.append(KUEUE)
        job["spec"]["suspend"] = False
        await until(lambda: why(reconciler) == "")


async def test_a_job_without_a_queue_that_kueue_suspends(
    jobs: FileExchange, tmp_path: Path
) -> None:
    """Our policy lets nobody go on with it by hand: what helps is a queue, and a new job."""
    server = ApiServer()
    server.groups.append(KUEUE)
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: server.created)
        (job,) = server.jobs["good"]
        del job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
        await until(lambda: "manages Jobs without a queue here" in why(reconciler))
        placement = reconciler.placement_of(NAME)
        assert placement is not None and placement.reason == "BackendError"
        assert "Cancel it" in why(reconciler) and "`queue`" in why(reconciler)


async def test_where_the_groups_may_not_be_read_nothing_is_refused(
    jobs: FileExchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ApiServer()
    server.groups_status = 503
    monkeypatch.setattr(api_groups, "RETRY_INTERVAL", 0.05)
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: server.asked.count("/apis/") > 2)
        assert reconciler.groups.is_starting() and server.created == []
        server.groups_status = 403
        await until(lambda: server.created)
        assert not reconciler.groups.lacks_kueue()


@pytest.mark.parametrize("page", ["<html>Sign in</html>", "[]", '{"groups": [{}]}', b"\xff"])
async def test_what_a_load_balancer_answers_in_between_ends_nothing(
    jobs: FileExchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str | bytes
) -> None:
    server = ApiServer()
    server.groups.append(KUEUE)
    server.groups_page = page
    monkeypatch.setattr(api_groups, "RETRY_INTERVAL", 0.05)
    async with reconciling(server, jobs, tmp_path) as reconciler:
        await until(lambda: server.asked.count("/apis/") > 2)
        assert reconciler.groups.is_starting() and server.created == []
        server.groups_page = None
        await until(lambda: server.created)


async def test_what_is_answered_of_a_namespace_in_between(
    jobs: FileExchange, tmp_path: Path
) -> None:
    server = ApiServer()
    server.groups.append(KUEUE)
    server.forbidden.add("good")
    server.namespace_page = "<html>Sign in</html>"
    async with reconciling(server, jobs, tmp_path):
        await until(lambda: server.asked.count("/api/v1/namespaces/good") > 4)
        server.forbidden.clear()
        await until(lambda: server.created)
