"""The words of a notification, and its forms: JSON, Slack, Teams, mail. Pure functions."""

from __future__ import annotations

import hashlib
import json
import posixpath
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from job_runner.protocol import times
from job_runner.protocol.units import format_duration

from ..domain.job import State
from .facts import JobFacts
from .hooks import RUNNING, WAITING, Hook

TEST = "test"
"""The event of a notification that `doctor --notify` sends."""
_EXAMPLE = JobFacts(
    name="example-aaaaaaaa",
    notebook="example.ipynb",
    owner="example",
    flavor="small",
    device="cpu",
    submitted="2026-01-01T00:00:00.000Z",
    state=State.SUCCEEDED,
)
_TITLES = {
    "succeeded": "{name} succeeded",
    "failed": "{name} failed",
    "cancelled": "{name} was cancelled",
    WAITING: "{name} waits for more than {limit}",
    RUNNING: "{name} has run for more than {limit}",
    TEST: "{name}: a test, no job has ended",
}
_SLACK_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""Without them a notebook's error could call everybody of a channel."""


@dataclass(frozen=True)
class HookMessage:
    """One event of one job for one hook. Each try has the same `id`."""

    id: str
    event: str
    title: str
    lines: tuple[str, ...]
    link: str | None
    time: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The whole as plain text, the title apart."""
        return "\n".join((*self.lines, *([self.link] if self.link else [])))

    def as_json(self) -> bytes:
        """Return the document that webhooks and commands get."""
        document = {"type": f"job.{self.event}", "timestamp": self.time, "data": self.data}
        return json.dumps(document).encode()

    def for_slack(self) -> bytes:
        """Return the body for one of Slack's incoming webhooks."""
        text = f"{self.title}\n{self.text}".rstrip().translate(_SLACK_ESCAPES)
        return json.dumps({"text": text, "mrkdwn": False}).encode()

    def for_teams(self) -> bytes:
        """Return the body for a workflow of Teams: an adaptive card, whose runs have no markup."""
        title = {"type": "TextRun", "text": self.title, "weight": "Bolder"}
        runs = [[title], *([{"type": "TextRun", "text": line}] for line in self.lines)]
        card: dict[str, Any] = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.2",
            "body": [{"type": "RichTextBlock", "inlines": inlines} for inlines in runs],
        }
        if self.link:
            card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": self.link}]
        kind = "application/vnd.microsoft.card.adaptive"
        attachment = {"contentType": kind, "contentUrl": None, "content": card}
        return json.dumps({"type": "message", "attachments": [attachment]}).encode()


def message_of(hook: Hook, event: str, job: JobFacts) -> HookMessage:
    """Return what a hook is told."""
    job = _seen_from_root(hook, job)
    limit = format_duration(hook.when.get(event) or 0)
    title = _TITLES[event].format(name=job.name, limit=limit)
    link = _link(hook, job)
    data = {
        "name": job.name,
        "notebook": job.notebook,
        "owner": job.owner,
        "group": job.group,
        "state": job.state.value,
        "reason": job.reason,
        "message": job.message if hook.message else None,
        "flavor": job.flavor,
        "device": job.device,
        "submitted": job.submitted,
        "started": job.started,
        "finished": job.finished,
        "result": job.result,
        "link": link,
    }
    key = "\0".join((job.name, job.submitted, event, hook.name))
    return HookMessage(
        id=f"msg_{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()[:32]}",
        event=event,
        title=title,
        lines=tuple(_lines(job, with_message=hook.message)),
        link=link,
        time=job.finished or times.now(),
        data=data,
    )


def sample_message(hook: Hook) -> HookMessage:
    """Return a message that is about no job."""
    return message_of(hook, TEST, _EXAMPLE)


def _user(job: JobFacts) -> str:
    """Return the owner without the namespace: on a cluster it is `<namespace>/<name>`."""
    return job.owner.partition("/")[2] or job.owner


def _seen_from_root(hook: Hook, job: JobFacts) -> JobFacts:
    """Return a job whose paths count from the hook's `root`, as far as they lie in it."""
    if hook.root is None:
        return job
    root = hook.root.format(user=_user(job))

    def convert(path: str) -> str:
        inside = posixpath.relpath(posixpath.join(job.workspace, path), root)
        return path if inside.startswith("../") else inside

    result = None if job.result is None else convert(job.result)
    return replace(job, notebook=convert(job.notebook), result=result)


def _lines(job: JobFacts, *, with_message: bool) -> list[str]:
    message = job.message if with_message else None
    rows = [
        ("", ": ".join(text for text in (job.reason, message) if text)),
        ("Notebook: ", job.notebook),
        ("Group: ", job.group),
        ("On: ", f"{job.flavor}, {job.device}"),
        ("Took: ", _duration(job)),
        ("Result: ", job.result),
    ]
    # A file's name may be anything; a lone surrogate could not be sent.
    texts = [f"{label}{value}" for label, value in rows if value]
    return [text.encode(errors="replace").decode() for text in texts]


def _duration(job: JobFacts) -> str | None:
    if job.started is None or job.finished is None:
        return None
    seconds = (times.parse(job.finished) - times.parse(job.started)).total_seconds()
    return format_duration(max(0.0, seconds))


def _link(hook: Hook, job: JobFacts) -> str | None:
    if hook.link is None:
        return None
    values = {
        "name": job.name,
        "owner": job.owner,
        "user": _user(job),
        "notebook": job.notebook,
        "result": job.result or job.notebook,
    }
    quoted = {key: quote(value, errors="surrogatepass") for key, value in values.items()}
    return hook.link.format(**quoted)
