"""Files of hooks, the events that are due, and what receivers read: pure functions."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.domain.job import State
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.notifications.events import due_events, next_limit
from jupyter_to_job.notifications.facts import MAX_MESSAGE, JobFacts, read_facts
from jupyter_to_job.notifications.hooks import Hook, load_hooks
from jupyter_to_job.notifications.message import message_of
from jupyter_to_job.notifications.webhook import signature_headers

from . import exchanges

JOB = "train-abcdefgh"
URL = "https://example.org/secret-path"
START = 1_767_225_600.0
QUEUED = JobFacts(JOB, "a b.ipynb", "ada", "small", "cpu", "2026-01-01T00:00:00.000Z", State.QUEUED)
RUNNING = replace(QUEUED, state=State.RUNNING, started="2026-01-01T01:00:00.000Z")
FAILED = replace(
    RUNNING,
    state=State.FAILED,
    reason="CellFailed",
    message="<!channel> & [x](http://evil)",
    finished="2026-01-01T01:00:09.000Z",
)
WHEN = ["failed", {"waiting_longer_than": "30m"}, {"running_longer_than": "2h"}]


def hook(**fields: Any) -> Hook:
    return Hook.model_validate({"name": "ops", "webhook": URL, **fields})


def write(tmp_path: Path, document: Any) -> Path:
    path = tmp_path / "hooks.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


MAIL = {"to": ["a@x"], "from": "b@x", "server": "x"}


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": "a b"}, "hooks.0.name: "),
        ({"when": ["exploded"]}, "hooks.0.when: 'exploded' is no event"),
        ({"when": "failed"}, "hooks.0.when: it must be a list"),
        ({"when": ["failed", "failed"]}, "hooks.0.when: failed is there twice"),
        ({"when": [{"running_longer_than": "soon"}]}, "hooks.0.when: 'soon' is no duration"),
        ({"when": ["running_longer_than"]}, "hooks.0.when: None is no duration"),
        ({"webhook": "ftp://secret"}, "hooks.0.webhook: it must be an address that begins"),
        (
            {"slack": URL},
            "hooks.0: it needs one of webhook, slack, teams, mail, command, and has 2",
        ),
        ({"webhook": None}, "hooks.0: it needs one of webhook"),
        ({"link": "https://x/{secret}"}, "hooks.0.link: it may have {name}, {owner}"),
        ({"root": "home/ada"}, "hooks.0.root: it must begin with / and may have {user}"),
        ({"root": "/home/{owner}"}, "hooks.0.root: it must begin with / and may have {user}"),
        ({"webhook": None, "slack": URL, "secret_file": "/x"}, "`secret_file` is for `webhook`"),
        ({"colour": "red"}, "hooks.0.colour: "),
        ({"timeout": "1h"}, "hooks.0.timeout: "),
        ({"webhook": None, "mail": {**MAIL, "to": []}}, "hooks.0.mail.to: "),
        ({"webhook": None, "mail": {**MAIL, "user": "me"}}, "`user` and `password_file` belong"),
        (
            {"webhook": None, "mail": {**MAIL, "user": "m", "password_file": "/p", "tls": "none"}},
            "a password is not sent without TLS",
        ),
        ({"webhook": None, "command": []}, "hooks.0.command: "),
        ({"webhook": None, "command": "notify-send"}, "hooks.0.command: "),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, fields: Any, fault: str) -> None:
    made = {"name": "ops", "webhook": URL, **fields}
    path = write(tmp_path, {"hooks": [{k: v for k, v in made.items() if v is not None}]})
    with pytest.raises(BadInput) as raised:
        load_hooks([path])
    assert str(path) in raised.value.message
    assert fault in raised.value.message
    assert "secret-path" not in raised.value.message
    assert "ftp://secret" not in raised.value.message


@pytest.mark.parametrize(
    "link",
    ["{group}", "{}", "{0}", "{", "}", "{owner.name}", "{owner[x]}", "{name:{owner}}", "{name!x}"],
)
def test_a_link_that_cannot_be_filled_in(tmp_path: Path, link: str) -> None:
    """Neither a hook's own, nor that of all hooks of the file."""
    entry, address = {"name": "ops", "webhook": URL}, f"https://x/{link}"
    for place, document in (
        ("link", {"hooks": [entry], "link": address}),
        ("hooks.0.link", {"hooks": [{**entry, "link": address}]}),
    ):
        with pytest.raises(BadInput) as raised:
            load_hooks([write(tmp_path, document)])
        assert f": {place}: it may have {{name}}, {{owner}}" in raised.value.message


def test_a_link_may_have_doubled_braces(tmp_path: Path) -> None:
    document = {"hooks": [{"name": "ops", "webhook": URL}], "link": "https://x/{{{name}}}"}
    (made,) = load_hooks([write(tmp_path, document)])
    assert message_of(made, "failed", FAILED).link == f"https://x/{{{JOB}}}"


NO_FILES = [
    "hooks: [", "a: !!python/object:os.system {}", "- 1", "\x00",
    "hooks: [{name: 2026-99-99}]", "hooks: !!timestamp x", "hooks: !!bool x", "hooks: !!int x",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_FILES)
def test_what_is_no_file_of_hooks(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput):
        load_hooks([write(tmp_path, text)])


def test_a_file_may_be_empty_or_missing(tmp_path: Path) -> None:
    assert load_hooks([write(tmp_path, "")]) == ()
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        load_hooks([tmp_path / "missing"])


def test_files_that_a_hook_names_count_from_its_folder(tmp_path: Path) -> None:
    mail = {**MAIL, "user": "me", "password_file": "password"}
    path = write(
        tmp_path,
        {
            "hooks": [
                {"name": "a", "webhook": URL, "secret_file": "../key", "ca_file": "/etc/ca.crt"},
                {"name": "b", "mail": mail, "ca_file": "~/ca.crt"},
            ]
        },
    )
    web, post = load_hooks([path])
    assert (web.secret_file, web.ca_file) == (tmp_path / "../key", Path("/etc/ca.crt"))
    assert post.mail is not None
    assert (post.mail.password_file, post.ca_file) == (tmp_path / "password", Path("~/ca.crt"))


def test_two_of_one_name(tmp_path: Path) -> None:
    path = write(tmp_path, {"hooks": [{"name": "a", "slack": URL}] * 2})
    with pytest.raises(BadInput, match="two hooks that are called a"):
        load_hooks([path])


@pytest.mark.parametrize(
    ("job", "seconds", "events"),
    [
        (QUEUED, 1799, []),
        (QUEUED, 1800, ["waiting_longer_than"]),
        (RUNNING, 1800, []),
        (RUNNING, 3600 + 7200, ["running_longer_than"]),
        (FAILED, 99_999, ["failed"]),
        (replace(FAILED, state=State.SUCCEEDED), 99_999, []),
        (replace(QUEUED, state=State.STARTING, started="2026-01-01T00:00:00.000Z"), 3600, []),
    ],
)
def test_events_that_are_due(job: JobFacts, seconds: int, events: list[str]) -> None:
    assert list(due_events(hook(when=WHEN), job, START + seconds)) == events


def test_a_hook_may_leave_groups_out() -> None:
    sweep = replace(FAILED, group="night")
    assert list(due_events(hook(groups=False), sweep, START)) == []
    assert list(due_events(hook(groups=False), FAILED, START)) == ["failed"]
    assert list(due_events(hook(), sweep, START)) == ["failed"]


def test_the_next_moment_to_look_at() -> None:
    hooks = [hook(when=WHEN), hook(when=[{"waiting_longer_than": "1h"}])]
    assert next_limit(hooks, QUEUED, START) == START + 1800
    assert next_limit(hooks, QUEUED, START + 1800) == START + 3600
    assert next_limit(hooks, RUNNING, START) == START + 3600 + 7200
    assert next_limit(hooks, FAILED, START) is None


def test_slack_takes_no_commands_from_a_notebook() -> None:
    document = json.loads(message_of(hook(), "failed", FAILED).for_slack())
    assert "<" not in document["text"]
    assert "&lt;!channel&gt; &amp; [x](http://evil)" in document["text"]


def test_teams_gets_text_without_markup() -> None:
    made = message_of(hook(link="https://hub/{result}"), "failed", FAILED)
    (attachment,) = json.loads(made.for_teams())["attachments"]
    card = attachment["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert {run["type"] for block in card["body"] for run in block["inlines"]} == {"TextRun"}
    assert card["actions"][0]["url"] == "https://hub/a%20b.ipynb"


def test_a_link_quotes_what_users_name() -> None:
    link = "https://hub/user/{owner}/{notebook}"
    job = replace(FAILED, owner="a?x=y", notebook="b#c/../\udcff.ipynb")
    assert message_of(hook(link=link), "failed", job).link == (
        "https://hub/user/a%3Fx%3Dy/b%23c/../%ED%B3%BF.ipynb"
    )


@pytest.mark.parametrize(
    ("owner", "link"),
    [
        ("ada", "ada/ada"),
        ("jhub/ada", "jhub/ada/ada"),
        ("jhub/claim/ada", "jhub/claim/ada/claim/ada"),
    ],
)
def test_a_user_is_an_owner_without_the_namespace(owner: str, link: str) -> None:
    made = message_of(
        hook(link="https://hub/{owner}/{user}"), "failed", replace(FAILED, owner=owner)
    )
    assert made.link == f"https://hub/{link}"


IN_HOME = ("home/jovyan/work/n.ipynb", "home/jovyan/out/r.ipynb")


@pytest.mark.parametrize(
    ("root", "workspace", "paths", "expected"),
    [
        (None, "/", IN_HOME, IN_HOME),
        ("/home/jovyan", "/", IN_HOME, ("work/n.ipynb", "out/r.ipynb")),
        ("/home/jovyan", "/", (IN_HOME[0], None), ("work/n.ipynb", None)),
        ("//home/jovyan/", "/", IN_HOME, ("work/n.ipynb", "out/r.ipynb")),
        ("/home/jovyan/work", "/", IN_HOME, ("n.ipynb", IN_HOME[1])),
        ("/home/jov", "/", IN_HOME, IN_HOME),
        ("/", "/", IN_HOME, IN_HOME),
        ("/home/{user}", "/", ("home/ada/..n.ipynb", None), ("..n.ipynb", None)),
        ("/w", "/w/deep", ("n.ipynb", "../r.ipynb"), ("deep/n.ipynb", "r.ipynb")),
        ("/w/deep", "/w", ("n.ipynb", "deep/r.ipynb"), ("n.ipynb", "r.ipynb")),
    ],
)
def test_paths_count_from_the_root_of_jupyterlab(
    root: str | None,
    workspace: str,
    paths: tuple[str, str | None],
    expected: tuple[str, str | None],
) -> None:
    """Those outside of it are told as they were recorded."""
    notebook, result = paths
    job = replace(
        FAILED, owner="jhub/ada", workspace=workspace, notebook=str(notebook), result=result
    )
    made = message_of(hook(root=root, link="https://hub/{notebook}+{result}"), "failed", job)
    assert (made.data["notebook"], made.data["result"]) == expected
    assert made.link == f"https://hub/{expected[0]}+{expected[1] or expected[0]}"
    assert f"Notebook: {expected[0]}" in made.lines
    assert (f"Result: {expected[1]}" in made.lines) is (result is not None)


def test_the_link_and_the_root_of_a_file_are_those_of_hooks_without(tmp_path: Path) -> None:
    own = {"link": "https://own", "root": "/own"}
    hooks = [{"name": "a", "webhook": URL}, {"name": "b", "webhook": URL, **own}]
    made = load_hooks([write(tmp_path, {"hooks": hooks, "link": "https://x", "root": "/home"})])
    assert [(h.link, h.root) for h in made] == [("https://x", "/home"), ("https://own", "/own")]


def test_a_name_that_is_no_text_can_be_sent() -> None:
    made = message_of(hook(), "failed", replace(FAILED, notebook="\udcff.ipynb"))
    for body in (made.as_json(), made.for_slack(), made.for_teams()):
        json.loads(body)
    made.text.encode()


def test_each_event_of_each_job_and_hook_has_an_id_of_its_own() -> None:
    other_job = replace(FAILED, submitted="2026-01-02T00:00:00.000Z")
    made = [
        message_of(hook(), "failed", FAILED),
        message_of(hook(name="other"), "failed", FAILED),
        message_of(hook(when=WHEN), "running_longer_than", FAILED),
        message_of(hook(), "failed", other_job),
    ]
    assert len({message.id for message in made}) == 4
    assert message_of(hook(tries=3), "failed", FAILED).id == made[0].id


def test_a_hook_may_leave_the_message_out() -> None:
    made = message_of(hook(message=False), "failed", FAILED)
    assert "evil" not in made.text
    assert b"evil" not in made.as_json()
    assert "CellFailed" in made.text


def test_the_signature_is_that_of_standard_webhooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example with which the libraries of Standard Webhooks are tested."""
    monkeypatch.setattr("time.time", lambda: 1614265330)
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    assert signature_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", body, key) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_facts_have_no_value_of_a_variable_or_parameter(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path)
    message = (
        "raised KeyError: 'hunter2-long' of {'deep-secret': 1}, cpu, 424242 " + "x" * MAX_MESSAGE
    )
    request = exchanges.request(
        JOB,
        env={"TOKEN": "hunter2-long", "KIND": "cpu"},
        parameters={"config": {"inner": ["deep-secret"], "pin": 424242}},
    )
    assert exchange.create(request, exchanges.RESULT, notify=True)
    claim = exchange.directory(JOB) / "attempt-1"
    claim.mkdir()
    outcome = {**exchanges.OUTCOME, "v": 1, "state": "failed", "message": message}
    (claim / "outcome.json").write_text(json.dumps({**outcome, "reason": "CellFailed"}))
    told = read_facts(exchange, JOB).message
    assert told is not None
    assert told.startswith("raised KeyError: '***' of {'***': 1}, cpu, *** xx")
    assert len(told) == MAX_MESSAGE
    (exchange.directory(JOB) / "cleared.json").write_text('{"v": 1, "time": "", "message": ""}')
    assert read_facts(exchange, JOB).message is None


PEM = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7\nhunter2+hunter2==\n-----END KEY-----"
LONG = "eyJhbGciOiJIUzI1NiJ9." + "PAYLOAD" * 60
MASKED = [
    (PEM, f"raised ValueError: no key: {PEM.splitlines()[1]}", "raised ValueError: no key: ***"),
    (PEM, f"raised KeyError: {PEM!r}.", "raised KeyError: '***'."),
    (PEM, f"raised KeyError: {repr(PEM)[:60]}…. Mend it.", "raised KeyError: '***…. Mend it."),
    ("hunter2\\hunter2", "raised KeyError: 'hunter2\\\\hunter2'.", "raised KeyError: '***'."),
    ("hunter2.. ", "cannot parse hunter2.", "cannot parse ***."),
    (LONG, f"invalid token: {LONG[:285]}….", "invalid token: ***…."),
    (LONG, f"the password is {LONG[:6]}….", "the password is ***…."),
    (LONG, f"the password is {LONG[:5]}….", f"the password is {LONG[:5]}…."),
    (LONG, f"{LONG[:50]} and {LONG[:50]}…", f"{LONG[:50]} and ***…"),
    (LONG, f'The last output was "token {LONG[:194]}".', 'The last output was "token ***".'),
    ('Bearer realm="hunter2"', 'no Bearer realm="hunter2"', "no ***"),
    ("hunter2…hunter3", "it is hunter2…hunter3.", "it is ***."),
]


@pytest.mark.parametrize(("value", "message", "expected"), MASKED)
def test_no_part_of_a_secret_is_told(
    tmp_path: Path, value: str, message: str, expected: str
) -> None:
    """The runner shows one line of an exception's text, and cuts it where it is long."""
    exchange = FileExchange(tmp_path)
    request = exchanges.request(JOB, env={"TOKEN": value, "SHORT": "eyJhbG.x"})
    assert exchange.create(request, exchanges.RESULT, notify=True)
    claim = exchange.directory(JOB) / "attempt-1"
    claim.mkdir()
    outcome = {**exchanges.OUTCOME, "v": 1, "state": "failed", "message": message}
    (claim / "outcome.json").write_text(json.dumps({**outcome, "reason": "CellFailed"}))
    assert read_facts(exchange, JOB).message == expected


def test_a_hostile_submission_costs_little(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path)
    nested: Any = "deep-secret"
    for _ in range(300):
        nested = [nested]
    parameters = {"nested": nested, "many": [f"value {i}" for i in range(20_000)]}
    request = exchanges.request(JOB, parameters=parameters)
    assert exchange.create(request, exchanges.RESULT, notify=True)
    exchanges.end(exchange.directory(JOB), "failed")
    assert read_facts(exchange, JOB).message is None
    few = replace(request, name="few-abcdefgh", parameters={"nested": nested})
    assert exchange.create(few, exchanges.RESULT, notify=True)
    exchanges.end(exchange.directory(few.name), "failed")
    assert read_facts(exchange, few.name).message == "Nothing ran."
