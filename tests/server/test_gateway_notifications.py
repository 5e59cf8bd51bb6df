"""The administrator's hooks on a cluster: of all users' jobs, and a user can name no receiver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from job_runner.protocol import layout
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.notifications.process import MODULE, NotifierProcess

from ..gateways import context_of, serving
from ..processes import gone, kill, processes, until
from ..receivers import WebReceiver, receiving_web
from ..unit import exchanges
from .test_controller_process import Controller
from .test_tenants import client, submit


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    with receiving_web() as receiver:
        yield receiver


def configure(folder: Path, web: WebReceiver, tries: int = 4) -> Path:
    path = folder / "hooks.yaml"
    hook = {"name": "ops", "webhook": web.url(), "retry_after": "1s", "tries": tries}
    path.write_text(yaml.safe_dump({"hooks": [hook]}))
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
