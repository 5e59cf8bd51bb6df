"""The administrator's hooks on a cluster: of all users' jobs, and a user can name no receiver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from job_runner.protocol import layout
from jupyter_to_job.controller.callers.identity import Identities
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.notifications.process import MODULE, NotifierProcess

from .. import notebooks
from ..gateways import context_of, serving
from ..pretend_cluster import Clock, PretendCluster, tenants
from ..processes import gone, kill, processes, until
from ..receivers import WebReceiver, receiving_web
from ..unit import exchanges
from .test_controller_process import Controller
from .test_tenants import client, server, submit


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    with receiving_web() as receiver:
        yield receiver


def configure(folder: Path, web: WebReceiver, tries: int = 4, **common: str) -> Path:
    path = folder / "hooks.yaml"
    hook = {"name": "ops", "webhook": web.url(), "retry_after": "1s", "tries": tries}
    path.write_text(yaml.safe_dump({"hooks": [hook], **common}))
    return path


def names(web: WebReceiver) -> list[str]:
    return [posted.json["data"]["name"] for posted in web.taken()]


def add(exchange: FileExchange, name: str) -> None:
    """Record a job that was delivered, and of which nobody was told."""
    request = exchanges.request(name, owner="jupyter/ada")
    assert exchange.create(request, exchanges.RESULT, notify=True)
    exchanges.end(exchange.directory(name))
    exchanges.deliver(exchange.directory(name))


def test_each_user_sees_what_was_told_of_their_own_jobs(
    exchange: Path, tmp_path: Path, web: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_TO_JOB_HOOKS", str(configure(tmp_path, web)))
    web.statuses = [500]
    files = FileExchange(exchange)
    files.prepare()
    notifier = NotifierProcess(exchange, exchange / ".notifier", serves_all=True)
    notifier.keep()
    try:
        with (
            context_of(files, has_hooks=True) as context,
            serving(context) as url,
            client(url) as call,
        ):
            jobs = {owner: submit(call, owner) for owner in ("ada", "eve")}
            until(lambda: sorted(names(web)) == sorted(jobs.values()), "both are told of")
            path = f"jobs/{jobs['ada']}"
            until(lambda: call("ada", "GET", path).json()["notifications"], "it is recorded")
            (told,) = call("ada", "GET", path).json()["notifications"]
            assert (told["hook"], told["event"]) == ("ops", "succeeded")
            assert call("eve", "GET", path).status_code == 404
    finally:
        notifier.stop()
    assert {p.json["data"]["owner"] for p in web.taken()} == {"ada", "eve"}


def test_paths_and_links_are_those_of_the_users_jupyterlab(
    exchange: Path, tmp_path: Path, web: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether JupyterLab submits, or somebody in another folder of its root by a terminal."""
    link = "https://hub.example.org/user/{user}/lab/tree/{result}"
    hooks = configure(tmp_path, web, root=f"{tmp_path}/home/{{user}}", link=link)
    monkeypatch.setenv("JUPYTER_TO_JOB_HOOKS", str(hooks))
    files, cluster, home = FileExchange(exchange), PretendCluster(), tmp_path / "home" / "ada"
    files.prepare()
    notebooks.write(home / "a b" / "train.ipynb", "1")
    token = cluster.add_pod(claim="home", path=str(home))
    identities = Identities(cluster, tenants(), cluster, Clock())
    notifier = NotifierProcess(exchange, exchange / ".notifier", serves_all=True)
    try:
        with (
            context_of(files, identities=identities, has_hooks=True) as context,
            serving(context) as url,
        ):
            lab, terminal = server(url, home, token), server(url, home / "a b", token)
            jobs = [lab.submit(Submission("a b/train.ipynb"))[0].name]
            jobs += [terminal.submit(Submission("train.ipynb"))[0].name]
            shown = {job.name: job for job in map(lab.deliver, jobs)}
            notifier.keep()
            until(lambda: sorted(names(web)) == sorted(jobs), "both are told of")
    finally:
        notifier.stop()
    for told in (posted.json["data"] for posted in web.taken()):
        job = shown[told["name"]]
        assert told["notebook"] == job.notebook == "a b/train.ipynb"
        assert told["result"] == job.delivery.path == f"a b/{job.name}.ipynb"
        assert told["owner"] == "team/ada"
        assert told["link"] == f"https://hub.example.org/user/ada/lab/tree/a%20b/{job.name}.ipynb"


def test_a_controller_tells_of_jobs_and_its_notifier_is_started_anew(
    exchange: Path, tmp_path: Path, web: WebReceiver
) -> None:
    web.status = 500
    hooks = configure(tmp_path, web, tries=40)
    files = FileExchange(exchange)
    files.prepare()
    add(files, "first-aaaaaaaa")
    controller = Controller(exchange, tmp_path, HOOKS=str(hooks))
    try:
        assert not web.posted  # another controller works on the exchange
        controller.unlock()
        until(lambda: web.posted, "a first try")
        (notifier,) = processes(MODULE, exchange)
        kill(notifier)
        web.status = 204
        add(files, "second-aaaaaaaa")
        until(lambda: {"first-aaaaaaaa", "second-aaaaaaaa"} <= set(names(web)), "both are told of")
        owed = [exchange / job / layout.NOTIFY for job in names(web)]
        until(lambda: not any(path.exists() for path in owed), "it is recorded")
        assert len(set(names(web))) == len(names(web))
        (notifier,) = processes(MODULE, exchange)
        assert controller.end() == 0
        until(lambda: gone(notifier), "its end")
    finally:
        controller.process.kill()
        controller.process.wait()
        controller.unlock()
    first = [p for p in web.posted if p.json["data"]["name"] == "first-aaaaaaaa"]
    assert len({posted.headers["webhook-id"] for posted in first}) == 1
    assert "127.0.0.1" not in "".join(
        line for line in controller.log.read_text().splitlines() if "ops" in line
    )


def test_a_notifier_whose_controller_was_killed_ends(
    exchange: Path, tmp_path: Path, web: WebReceiver
) -> None:
    controller = Controller(exchange, tmp_path, HOOKS=str(configure(tmp_path, web)))
    controller.unlock()
    until(lambda: processes(MODULE, exchange), "a notifier")
    (notifier,) = processes(MODULE, exchange)
    controller.process.kill()
    controller.process.wait()
    until(lambda: gone(notifier), "its end")
