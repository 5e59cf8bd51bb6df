"""Hooks hear of jobs with no browser anywhere: once, after faults and kills, or given up."""

from __future__ import annotations

import json
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiosmtpd.smtp import AuthResult

from .. import notebooks
from ..cluster.box.pki import Pki
from ..processes import gone, kill, processes, until
from ..receivers import WebReceiver, receiving_mail, receiving_web
from .cli import Cli

MODULE = "jupyter_to_job.notifications"
QUICK = {"retry_after": "1s", "tries": 4}


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    with receiving_web() as receiver:
        yield receiver


def configure(cli: Cli, *hooks: dict[str, Any], **more: Any) -> Path:
    """Write the file with the hooks, where the setting names it."""
    path = cli.workspace.parent / "hooks.yaml"
    draft = path.with_suffix(".new")  # a notifier that works must not see an empty file
    draft.write_text(yaml.safe_dump({"hooks": [{**QUICK, **hook} for hook in hooks], **more}))
    draft.chmod(0o600)
    draft.replace(path)
    cli.variables["JUPYTER_TO_JOB_HOOKS"] = str(path)
    return path


def run(cli: Cli, code: str, *options: str) -> str:
    """Run a notebook to its end, and return the job's name."""
    notebooks.write(cli.workspace / "n.ipynb", code)
    name = cli.submit("n.ipynb", *options)
    cli.run("wait", name)
    return name


def told(cli: Cli, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What `show` says of the notifications of a job, by hook and event."""
    shown = cli.json("show", name)["notifications"]
    return {(found["hook"], found["event"]): found for found in shown}


def until_told(cli: Cli, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Wait until nothing more is owed of a job."""
    until(lambda: not (cli.exchange / name / "notify.json").exists(), f"all is told of {name}")
    return told(cli, name)


def test_a_webhook_is_told_after_faults_and_can_check_who_says_it(
    cli: Cli, web: WebReceiver
) -> None:
    secret = cli.workspace.parent / "secret"
    secret.write_text("whsec_c2VjcmV0IGtleQ==\n")
    web.statuses = [500, 503]
    hook = {"name": "ops", "webhook": web.url(), "secret_file": str(secret)}
    configure(cli, hook, link="https://hub/lab/tree/{result}")
    name = run(cli, "1")
    (found,) = until_told(cli, name).values()
    assert (found["event"], found["state"], found["tries"]) == ("succeeded", "sent", 3)
    assert [posted.status for posted in web.posted] == [500, 503, 204]
    assert len({posted.headers["webhook-id"] for posted in web.posted}) == 1
    assert all(posted.is_signed_with(b"secret key") for posted in web.posted)
    document = web.taken()[0].json
    assert document["type"] == "job.succeeded"
    data = document["data"]
    assert (data["name"], data["state"]) == (name, "succeeded")
    assert data["result"] == f"{name}.ipynb"
    assert data["link"] == f"https://hub/lab/tree/{name}.ipynb"
    assert "succeeded: sent after 3 tries, " in cli.run("show", name).stdout


def test_a_secret_beside_the_hooks(cli: Cli, web: WebReceiver) -> None:
    """Whoever reads the hooks works in a folder of their own."""
    (cli.workspace.parent / "secret").write_text("secret key")
    configure(cli, {"name": "ops", "webhook": web.url(), "secret_file": "secret"})
    assert "ops: sent" in cli.run("doctor", "--notify").stdout
    name = run(cli, "1")
    (found,) = until_told(cli, name).values()
    assert (found["state"], found["tries"]) == ("sent", 1)
    assert [posted.is_signed_with(b"secret key") for posted in web.posted] == [True, True]


def test_a_relative_path_of_hooks(cli: Cli, web: WebReceiver) -> None:
    """Doctor would find the file, and the process that tells hooks would not."""
    configure(cli, {"name": "ops", "webhook": web.url()})
    cli.variables["JUPYTER_TO_JOB_HOOKS"] = "../hooks.yaml"
    doctor = cli.run("doctor", "--notify")
    assert doctor.returncode == 1
    assert "JUPYTER_TO_JOB_HOOKS='../hooks.yaml': It is no absolute path." in doctor.stdout
    assert not web.posted


def test_nothing_secret_is_told(cli: Cli, web: WebReceiver) -> None:
    configure(cli, {"name": "all", "webhook": web.url("/path-is-secret")})
    code = "import os\nraise ValueError(f\"{os.environ['TOKEN']} and {password}\")"
    notebooks.write(cli.workspace / "n.ipynb", code)
    name = cli.submit("n.ipynb", "--env", "TOKEN=hunter2-hunter2", "-p", "password", "my-password")
    until(web.taken, "it is told")
    body = web.posted[0].body.decode()
    assert "hunter2" not in body
    assert "my-password" not in body
    assert json.loads(body)["data"]["message"].count("***") == 2
    until_told(cli, name)
    (log,) = cli.exchange.glob(".dispatcher/*/log")
    assert "path-is-secret" not in log.read_text()
    documents = (cli.exchange / name / "notifications.json").read_text()
    assert "path-is-secret" not in documents
    assert stat.S_IMODE((cli.exchange / name / "notifications.json").stat().st_mode) == 0o600


def test_no_part_of_a_secret_is_told(cli: Cli, web: WebReceiver) -> None:
    """It has many lines, and the first of them is cut, because it is long."""
    configure(cli, {"name": "all", "webhook": web.url()})
    secret = f"{'hunter2-' * 50}\nhunter2-hunter2"
    run(cli, "import os\nraise ValueError(os.environ['TOKEN'])", "--env", f"TOKEN={secret}")
    until(web.taken, "it is told")
    assert "hunter2" not in web.posted[0].body.decode()
    assert "ValueError: ***…" in web.posted[0].json["data"]["message"]


def test_what_never_arrives_is_given_up_with_a_word(cli: Cli, web: WebReceiver) -> None:
    web.status = 500
    configure(cli, {"name": "ops", "webhook": web.url(), "tries": 2})
    name = run(cli, "1")
    (found,) = until_told(cli, name).values()
    assert (found["state"], found["tries"]) == ("given_up", 2)
    assert found["message"] == "It answered 500."
    assert len(web.posted) == 2
    shown = cli.run("show", name).stdout
    assert "succeeded: given up after 2 tries, " in shown
    assert "It answered 500." in shown
    assert f"{name}: ops was not told: succeeded. It answered 500." in cli.run("doctor").stdout


@pytest.mark.parametrize("status", [301, 404])
def test_an_answer_that_will_not_change_is_final(cli: Cli, web: WebReceiver, status: int) -> None:
    web.status, web.headers = status, {"Location": web.url("/elsewhere")}
    configure(cli, {"name": "ops", "webhook": web.url()})
    (found,) = until_told(cli, run(cli, "1")).values()
    assert (found["state"], found["tries"]) == ("given_up", 1)
    assert [posted.path for posted in web.posted] == ["/jobs"]


def test_a_receiver_says_when_to_try_again(cli: Cli, web: WebReceiver) -> None:
    web.statuses, web.headers = [429], {"Retry-After": "4"}
    configure(cli, {"name": "ops", "webhook": web.url()})
    (found,) = until_told(cli, run(cli, "1")).values()
    assert (found["state"], found["tries"]) == ("sent", 2)
    first, second = (int(posted.headers["webhook-timestamp"]) for posted in web.posted)
    assert second - first >= 3


def test_kills_lose_nothing(cli: Cli, web: WebReceiver) -> None:
    web.status = 500
    configure(cli, {"name": "ops", "webhook": web.url(), "tries": 40})
    name = run(cli, "1")
    until(lambda: web.posted, "a first try")
    for process in (*cli.dispatchers(), *processes(MODULE, cli.exchange)):
        kill(process)
    tried = len(web.posted)
    web.status = 204
    assert told(cli, name)["ops", "succeeded"]["state"] == "pending"
    second = run(cli, "2")  # starts the next dispatcher
    until_told(cli, second)
    found = until_told(cli, name)["ops", "succeeded"]
    assert found["state"] == "sent"
    first_id = web.posted[0].headers["webhook-id"]
    repeated = [p for p in web.posted[tried:] if p.headers["webhook-id"] == first_id]
    assert [posted.status for posted in repeated] == [204]
    assert found["tries"] > tried


def test_a_job_that_ended_while_nobody_worked_is_told_of(cli: Cli, web: WebReceiver) -> None:
    configure(cli, {"name": "ops", "webhook": web.url()})
    name = cli.submit_waiting()
    until(lambda: processes(MODULE, cli.exchange), "a notifier")
    for process in (*cli.dispatchers(), *processes(MODULE, cli.exchange)):
        kill(process)
    cli.release()
    until(lambda: (cli.exchange / name / "attempt-1" / "outcome.json").exists(), "its end")
    assert not web.posted
    run(cli, "2")
    until_told(cli, name)
    assert [p.json["data"]["name"] for p in web.taken()].count(name) == 1


def test_what_is_tried_again_outlives_the_dispatcher(cli: Cli, web: WebReceiver) -> None:
    web.status = 500
    configure(cli, {"name": "ops", "webhook": web.url(), "tries": 40})
    name = run(cli, "1")
    until(lambda: web.posted, "a first try")
    (notifier,) = processes(MODULE, cli.exchange)
    for dispatcher in cli.dispatchers():
        kill(dispatcher)
    web.status = 204
    until(lambda: web.taken(), "it is told")
    until(lambda: gone(notifier), "the notifier has nothing to do, and ends")
    assert told(cli, name)["ops", "succeeded"]["state"] == "sent"


def test_mail_arrives_after_a_fault(cli: Cli) -> None:
    with receiving_mail() as server:
        server.replies = ["451 Try again later"]
        mail = {
            "to": ["me@example.org", "team@example.org"],
            "from": "jobs@example.org",
            "server": f"127.0.0.1:{server.port}",
            "tls": "none",
        }
        configure(cli, {"name": "mail", "mail": mail})
        name = run(cli, "raise ValueError('no such column')")
        (found,) = until_told(cli, name).values()
        assert (found["event"], found["state"], found["tries"]) == ("failed", "sent", 2)
        (arrived,) = server.mails
        assert arrived["Subject"] == f"{name} failed"
        assert arrived["To"] == "me@example.org, team@example.org"
        assert arrived["Message-ID"].startswith("<msg_")
        assert "ValueError: no such column" in arrived.get_content()  # type: ignore[attr-defined]


def test_mail_by_tls_with_a_password(cli: Cli, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    pki.authority("ca")
    pki.issue("mail", "/CN=mail", "IP:127.0.0.1", by="ca")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki.certificate("mail"), pki.key("mail"))
    password = tmp_path / "password"
    password.write_text("wrong")

    def authenticate(*arguments: Any) -> AuthResult:
        return AuthResult(success=arguments[-1].password == b"right", handled=False)

    with receiving_mail(
        tls_context=context,
        require_starttls=True,
        authenticator=authenticate,
        auth_required=True,
    ) as server:
        mail = {
            "to": ["me@example.org"],
            "from": "jobs@example.org",
            "server": f"127.0.0.1:{server.port}",
            "user": "jobs",
            "password_file": str(password),
        }
        hook = {"name": "mail", "mail": mail}
        configure(cli, hook)
        assert "certificate verify failed" in cli.run("doctor", "--notify").stdout
        configure(cli, {**hook, "ca_file": str(pki.certificate("ca"))})
        assert "The mail server answered 535." in cli.run("doctor", "--notify").stdout
        name = run(cli, "1")
        path = cli.exchange / name / "notifications.json"
        until(lambda: path.exists() and "535" in path.read_text(), "a first try")
        password.write_text("right")  # mended: it is tried again
        (found,) = until_told(cli, name).values()
        assert (found["state"], found["message"]) == ("sent", None)
        assert len(server.mails) == 1


def test_mail_that_nobody_takes_is_given_up(cli: Cli) -> None:
    with receiving_mail() as server:
        server.replies = ["550 No such user"] * 5
        address = f"127.0.0.1:{server.port}"
        mail = {"to": ["me@x"], "from": "jobs@x", "server": address, "tls": "none"}
        configure(cli, {"name": "mail", "mail": mail})
        (found,) = until_told(cli, run(cli, "1")).values()
    assert (found["state"], found["tries"]) == ("given_up", 1)
    assert found["message"] == "The mail server answered 550."


def test_a_command_gets_the_facts(cli: Cli) -> None:
    told_file = cli.workspace.parent / "told"
    script = f'(echo "$JOB_EVENT $JOB_NAME $JOB_STATE"; cat) > {told_file}'
    configure(
        cli,
        {"name": "bell", "command": ["sh", "-c", script]},
        {"name": "broken", "command": ["sh", "-c", "echo why >&2; exit 3"]},
        {"name": "missing", "command": ["/nonexistent/bell"]},
        {"name": "slow", "command": ["sleep", "600"], "timeout": "1s"},
        {"name": "later", "command": ["sh", "-c", "exit 75"], "tries": 2},
    )
    name = run(cli, "1")
    found = until_told(cli, name)
    head, document = told_file.read_text().split("\n", 1)
    assert head == f"succeeded {name} succeeded"
    assert json.loads(document)["data"]["name"] == name
    ends = {hook: (n["state"], n["tries"], n["message"]) for (hook, _), n in found.items()}
    assert ends["bell"] == ("sent", 1, None)
    assert ends["broken"] == ("given_up", 1, "It ended with exit status 3: why")
    assert ends["missing"][:2] == ("given_up", 1)
    assert ends["slow"] == ("given_up", 1, "It took longer than 1 s, and was ended.")
    assert ends["later"][:2] == ("given_up", 2)


def test_long_waits_and_runs_are_told_of_while_they_last(cli: Cli, web: WebReceiver) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    hook = {"name": "ops", "webhook": web.url()}
    when = {"running_longer_than": "2s"}
    configure(cli, {**hook, "when": [when, "cancelled"]})
    running = cli.submit_waiting()
    when["waiting_longer_than"] = "1s"
    configure(cli, {**hook, "when": [when, "cancelled"]})
    waiting = cli.submit("waits.ipynb")

    def types(name: str) -> list[str]:
        return [p.json["type"] for p in web.taken() if p.json["data"]["name"] == name]

    until(lambda: types(running), "the run is told of")
    until(lambda: types(waiting), "the wait is told of")
    assert cli.run("cancel", waiting).returncode == 0
    cli.release()
    until_told(cli, running)
    until_told(cli, waiting)
    assert types(running) == ["job.running_longer_than"]  # a success is not in `when`
    assert types(waiting) == ["job.waiting_longer_than", "job.cancelled"]


def test_a_receiver_that_hangs_delays_nobody(cli: Cli, web: WebReceiver) -> None:
    web.gate.clear()
    with receiving_web() as other:
        hangs = {"name": "hangs", "webhook": web.url(), "timeout": "2s", "tries": 2}
        configure(cli, hangs, {"name": "works", "webhook": other.url()})
        names = [run(cli, str(number)) for number in range(3)]  # run and delivered meanwhile
        until(lambda: len(other.taken()) == 3, "the other hook is told of all")
        found = until_told(cli, names[0])
    assert found["hangs", "succeeded"]["message"] == "No answer within 2 s."
    assert found["hangs", "succeeded"]["state"] == "given_up"


def test_a_mended_address_gets_what_waits_for_a_receiver_that_hangs(
    cli: Cli, web: WebReceiver
) -> None:
    web.status = 500
    web.gate.clear()
    configure(cli, {"name": "ops", "webhook": web.url(), "timeout": "5m"})
    names = [run(cli, str(number)) for number in range(3)]
    until(lambda: all(told(cli, name) for name in names), "all are due")
    with receiving_web() as mended:
        configure(cli, {"name": "ops", "webhook": mended.url()})
        web.gate.set()
        found = [until_told(cli, name)["ops", "succeeded"] for name in names]
        assert {p.json["data"]["name"] for p in mended.posted} == set(names)
    assert sorted((n["state"], n["tries"]) for n in found) == [*[("sent", 1)] * 2, ("sent", 2)]
    assert len(web.posted) == 1


def test_without_hooks_there_is_no_process_and_no_document(cli: Cli) -> None:
    name = run(cli, "1")
    assert not processes(MODULE, cli.exchange)
    documents = {path.name for path in (cli.exchange / name).iterdir()}
    assert not documents & {"notify.json", "notifications.json"}


def test_a_wrong_file_keeps_no_job_from_running(cli: Cli, web: WebReceiver) -> None:
    path = configure(cli, {"name": "ops", "webhook": web.url(), "when": ["exploded"]})
    name = run(cli, "1")
    assert cli.json("show", name)["state"] == "succeeded"
    fault = f"{path}: hooks.0.when: 'exploded' is no event."
    doctor = cli.run("doctor")
    assert fault in doctor.stdout
    assert doctor.returncode == 1
    configure(cli, {"name": "ops", "webhook": web.url()}, link="https://hub/{group}")
    doctor = cli.run("doctor")
    assert f"{path}: link: it may have {{name}}, {{owner}}" in doctor.stdout
    assert doctor.returncode == 1
    configure(cli, {"name": "ops", "webhook": web.url()})  # mended: nothing was lost
    run(cli, "2")
    until_told(cli, name)
    assert [p.json["data"]["name"] for p in web.taken()].count(name) == 1


def test_a_hook_that_is_removed_is_given_up(cli: Cli, web: WebReceiver) -> None:
    web.status = 500
    configure(cli, {"name": "ops", "webhook": web.url(), "retry_after": "1m"})
    name = run(cli, "1")
    until(lambda: any("500" in str(n["message"]) for n in told(cli, name).values()), "a try")
    configure(cli)
    (found,) = until_told(cli, name).values()
    assert (found["state"], found["message"]) == (
        "given_up",
        "There is no hook of this name any more.",
    )


def test_hooks_of_the_machine_and_of_the_user_count_both(cli: Cli, web: WebReceiver) -> None:
    folders = [cli.workspace.parent / name for name in ("user", "machine")]
    for folder, names in zip(folders, (["mine", "both"], ["ours", "both"]), strict=True):
        folder.mkdir()
        hooks = [{"name": n, "webhook": web.url(f"/{folder.name}/{n}"), **QUICK} for n in names]
        (folder / "jupyter_to_job_hooks.yaml").write_text(yaml.safe_dump({"hooks": hooks}))
    cli.variables["JUPYTER_CONFIG_PATH"] = ":".join(map(str, folders))
    until_told(cli, run(cli, "1"))
    assert {p.path for p in web.taken()} == {"/user/mine", "/user/both", "/machine/ours"}


def test_doctor_sends_a_test_to_each_hook(cli: Cli, web: WebReceiver) -> None:
    web.statuses = [403]
    configure(
        cli,
        {"name": "chat", "slack": web.url("/slack"), "when": ["failed"]},
        {"name": "team", "teams": web.url("/teams")},
    )
    doctor = cli.run("doctor", "--notify")
    assert doctor.returncode == 1
    assert "chat: not sent: It answered 403." in doctor.stdout
    assert "team: sent" in doctor.stdout
    slack, teams = web.posted
    assert "a test, no job has ended" in slack.json["text"]
    (attachment,) = teams.json["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
