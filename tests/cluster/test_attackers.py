"""Whoever has a pod cannot see or touch another user's job, by any route; nor can a forged pod.

Three attackers: another user in the same namespace, a user of the same name in another listed one,
and one of the same name in a namespace that is not listed.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from job_runner.protocol import layout
from jupyter_to_job.api.routes import ROUTES
from jupyter_to_job.domain.names import job_name
from tests.cluster.box.cluster import Cluster
from tests.cluster.box.images import Images
from tests.cluster.product import (
    HOME,
    RIVALS,
    TEAM,
    DevPod,
    start_dev_pod,
)
from tests.cluster.scenes import SubmittedJob, notebook, submit
from tests.cluster.side_by_side import once

pytestmark = pytest.mark.side_by_side
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
ASK = """
import httpx, json, os, sys
from concurrent.futures import ThreadPoolExecutor
token = open('/var/run/secrets/jupyter-to-job/token').read()
mine = {'Authorization': 'Bearer ' + token}
api = os.environ['JUPYTER_TO_JOB_GATEWAY'] + '/api/'
with httpx.Client(base_url=api, headers=mine, timeout=60) as client, ThreadPoolExecutor(8) as pool:
    def ask(call):
        answer = client.request(call[0], call[1], content=call[2])
        return [answer.status_code, answer.text]
    print(json.dumps(list(pool.map(ask, json.loads(sys.argv[1])))))
"""
LISTEN = """
import httpx, os, sys
token = open('/var/run/secrets/jupyter-to-job/token').read()
mine = {'Authorization': 'Bearer ' + token}
api = os.environ['JUPYTER_TO_JOB_GATEWAY'] + '/api/'
with httpx.stream('GET', api + 'events', headers=mine, timeout=30) as stream:
    print(stream.status_code)
    for line in stream.iter_lines():
        print(line)
        if os.path.exists(sys.argv[1]):  # there is a line each second
            break
"""
"""Prints its events until a file is there."""
ENOUGH = "/tmp/enough"
DIGESTS = """
import hashlib, json, pathlib, sys
root = pathlib.Path('/exchange', sys.argv[1])
digests = {
    str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
    for file in root.rglob('*') if file.is_file()
}
print(json.dumps(digests))
"""
TIME = "2026-11-21T09:31:00.000Z"
OUTCOME = {
    "v": 1,
    "state": "failed",
    "reason": "CellError",
    "message": "Forged.",
    "exit_code": 1,
    "cells": {"done": 0, "total": 1},
    "started": TIME,
    "finished": TIME,
    "usage": {},
    "result_sha256": None,
}
"""What an agent would send at the end of a run."""
Call = tuple[str, str, str]
"""Method, path below `/api/`, body."""


@dataclass(frozen=True)
class Victim:
    """A user's dev pod, a job of hers that has ended, and one that runs."""

    dev_pod: DevPod
    ended: str
    running: str


@once
def start_victim(dev_pod: DevPod) -> Victim:
    dev_pod.write(f"{HOME}/secret.ipynb", notebook("print('a secret')"))
    running = SubmittedJob.counting(dev_pod, "running", "-f", "crowd")
    ended = submit(dev_pod, f"{HOME}/secret.ipynb")
    assert ended["state"] == "succeeded"
    running.until_printed()
    return Victim(dev_pod, ended["name"], running.name)


@once
def start_attackers(cluster: Cluster, images: Images) -> dict[str, DevPod]:
    """Return them by where they are."""
    places = {
        "beside": (TEAM, "jupyter-eve", "eve"),
        "elsewhere": (RIVALS, "jupyter-ada-2", "ada"),
        "unlisted": ("elsewhere", "jupyter-ada-3", "ada"),
    }
    with ThreadPoolExecutor() as pool:
        starting = {
            where: pool.submit(start_dev_pod, cluster, images, namespace, name, user=user)
            for where, (namespace, name, user) in places.items()
        }
    return {where: pod.result() for where, pod in starting.items()}


def files_of(dev_pod: DevPod, job: str) -> dict[str, str]:
    """Return the digests of the files in the directory of a job of a dev pod."""
    controller = dev_pod.controller.deployment
    answer = dev_pod.cluster.kubectl("exec", *controller, "--", "python3", "-c", DIGESTS, job)
    found: dict[str, str] = json.loads(answer)
    return found


def calls(victim: Victim, job: str, files: dict[str, str]) -> list[Call]:
    """Return every way to name a job: each route that has one, and each file, by each method."""
    paths = [p.replace("([^/]+)", job) for _, p, _ in ROUTES if p.startswith("jobs/([^/]+)")]
    names = {layout.DELIVERY, layout.CANCEL, layout.DELETE, layout.RESULT}
    for attempt in ("attempt-1", "attempt-2"):
        journal = f"{layout.JOURNAL}/00000009.jsonl"
        for name in (layout.RUNNER, layout.OUTCOME, layout.POD, journal, "artifacts/a.txt"):
            names.add(f"{attempt}/{name}")
    paths += [f"exchange/{job}/{name}" for name in sorted(names | files.keys())]
    (pod,) = SubmittedJob(victim.dev_pod, job).pods()
    bodies = {
        layout.RUNNER: {"v": 1, "pod": pod["metadata"]["uid"]},
        layout.OUTCOME: OUTCOME,
        layout.DELIVERY: {"v": 1, "path": "x.ipynb", "sha256": "0" * 64, "time": TIME},
    }
    return [
        (method, f"{path}?offset=0", json.dumps(bodies.get(path.rpartition("/")[2], {})))
        for path in dict.fromkeys(paths)
        for method in METHODS
    ]


def ask(attacker: DevPod, asked: list[Call]) -> list[tuple[int, str]]:
    """Send requests from a pod; return the status and the text of each answer."""
    return [(a, b) for a, b in json.loads(attacker.run("python3", "-c", ASK, json.dumps(asked)))]


def without_request_id(answer: str) -> str:
    """Return an error's document without the id, which each request has anew."""
    return re.sub(r',"request_id":"[^"]*"', "", answer)


@pytest.mark.parametrize("where", ["beside", "elsewhere", "unlisted"])
def test_no_route_leads_to_another_users_job(
    cluster: Cluster, dev_pod: DevPod, images: Images, where: str
) -> None:
    """An answer about her job is the answer about a job that does not exist."""
    victim, attackers = start_victim(dev_pod), start_attackers(cluster, images)
    nobody = job_name("secret.ipynb", owner="nobody")
    jobs = (victim.ended, victim.running)
    before = {job: files_of(dev_pod, job) for job in jobs}
    asked = {job: calls(victim, job, before[job]) for job in jobs}
    unknown: dict[Call, Any] = {}
    for job in jobs:
        assert {layout.REQUEST, layout.ORIGIN, "attempt-1/runner.json"} <= before[job].keys()
        assert len(asked[job]) > 150
        answers = ask(attackers[where], asked[job])
        twins = [(method, path.replace(job, nobody), body) for method, path, body in asked[job]]
        new = [twin for twin in twins if twin not in unknown]
        for twin, (status, text) in zip(new, ask(attackers[where], new), strict=True):
            unknown[twin] = (status, without_request_id(text))
        allowed = {403} if where == "unlisted" else {404, 405}
        for call, twin, (status, text) in zip(asked[job], twins, answers, strict=True):
            assert status in allowed, (call, text)
            answer = (status, without_request_id(text).replace(job, nobody))
            assert answer == unknown[twin], call
    after = {job: files_of(dev_pod, job) for job in jobs}
    assert after[victim.ended] == before[victim.ended]
    assert after[victim.running].keys() == before[victim.running].keys()
    states = [victim.dev_pod.job(job)["state"] for job in jobs]
    assert states == ["succeeded", "running"]


def test_lists_and_events_have_nothing_of_another_user(
    cluster: Cluster, dev_pod: DevPod, images: Images
) -> None:
    victim, attackers = start_victim(dev_pod), start_attackers(cluster, images)
    hers = SubmittedJob.counting(victim.dev_pod, "unheard", "-f", "crowd")
    hers.until_printed()
    job = hers.name
    names = f"{victim.ended},{job}"
    with ThreadPoolExecutor() as pool:
        listening = {
            where: pool.submit(attacker.run, "python3", "-c", LISTEN, ENOUGH)
            for where, attacker in attackers.items()
        }
        for where, attacker in attackers.items():
            for path in ("jobs", "jobs?limit=500", f"jobs?name={names}", f"events?name={job}"):
                if path.startswith("events") and where != "unlisted":
                    continue  # it would not end: the other stream is listened to
                ((status, text),) = ask(attacker, [("GET", path, "")])
                assert status == (403 if where == "unlisted" else 200)
                assert victim.ended not in text and job not in text
        hers.let_end()
        ended = hers.until_ended()
        assert (ended["state"], ended["delivery"]["state"]) == ("succeeded", "delivered")
        for where, heard in listening.items():
            attackers[where].run("touch", ENOUGH)
            lines = heard.result().splitlines()
            assert lines[0] == ("403" if where == "unlisted" else "200")
            assert job not in "\n".join(lines)


def test_nobody_submits_what_another_user_sent(
    cluster: Cluster, dev_pod: DevPod, images: Images
) -> None:
    """Who knows the digest of a file learns nothing by it, and gets no job that has the file."""
    victim, attackers = start_victim(dev_pod), start_attackers(cluster, images)
    digest = files_of(dev_pod, victim.ended)[layout.SNAPSHOT]
    body = json.dumps({"notebook": "home/jovyan/a.ipynb", "expected_sha256": digest})
    asked = [("HEAD", f"blobs/{digest}", ""), ("POST", "jobs", body)]
    assert [status for status, _ in ask(victim.dev_pod, asked[:1])] == [200]
    for where, attacker in attackers.items():
        statuses = [status for status, _ in ask(attacker, asked)]
        assert statuses == ([403, 403] if where == "unlisted" else [409, 409]), where
