"""What a job prints reaches its readers while it is news, and holds up nobody else's."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from job_runner.protocol import layout, liveness
from job_runner.protocol.journal.journal import JournalWriter
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller

from ..gateways import own_process
from . import exchanges

RATE = 5_000_000
"""Bytes a second that the loud job prints."""
TIMES = 40
"""How often each job prints, ten times a second."""
LAST = "the end"
PROMISED = 2.0 if os.environ.get("JUPYTER_TO_JOB_STRICT") else 10.0
"""Seconds to a reader; five times as many where others use the machine, too."""
SNAPSHOT = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}).encode()
JOBS = {"loud-aaaaaaaa": ("ada", RATE), "quiet-aaaaaaaa": ("eve", 100)}


@contextmanager
def agent_of(url: str, job: str, folder: Path) -> Iterator[JournalWriter]:
    """Run a job's agent; yield what writes the journal that it sends."""
    folder.mkdir()
    token = folder / ".token"
    token.write_text(f"{job}/pod-of-{job}")
    options = ["--gateway", url, "--token-file", str(token), "--folder", str(folder)]
    command = [sys.executable, "-m", "jupyter_to_job.agent", job, *options]
    with subprocess.Popen(command, env={**os.environ, "POD_UID": f"pod-of-{job}"}) as process:
        try:
            while not (folder / job).exists():
                assert process.poll() is None, "the agent ended"
                time.sleep(0.02)
            claim = liveness.claim_attempt(folder / job, 1)
            yield JournalWriter(claim.directory / layout.JOURNAL)
        finally:
            process.kill()


def print_at(writer: JournalWriter, rate: int) -> None:
    """Print at a rate, ten times a second, each time with the time; at last the end."""
    writer.append({"k": "start", "t": time.time(), "v": 1, "kernel": "python3", "sockets": ""})
    for text in [*["x" * (rate // 10)] * TIMES, LAST]:
        time.sleep(0.1)
        output = {"output_type": "stream", "name": "stdout", "text": text}
        writer.append({"k": "output", "i": 0, "t": time.time(), "output": output})


def read(jobs: RemoteJobs, name: str) -> tuple[list[float], int]:
    """Follow a job as the live view does, to the end; return its records' ages, and their bytes."""
    ages: list[float] = []
    offset, record = 0, {}
    for change in jobs.changes([name]):
        while change is not None and isinstance(size := getattr(change, "journal", None), int):
            if offset >= size:
                break
            answer = jobs.journal(name, offset)
            offset = answer.next
            for record in answer.records:
                ages.append(time.time() - record["t"])
        if record.get("output", {}).get("text") == LAST:
            break
    return ages, offset


def test_five_megabytes_a_second(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path / "exchange")
    sha256 = hashlib.sha256(SNAPSHOT).hexdigest()
    for name, (owner, _) in JOBS.items():
        request = exchanges.request(name, owner=owner, snapshot_sha256=sha256)
        assert exchange.create(request, SNAPSHOT)
    with (
        own_process(exchange) as (url, _),
        ThreadPoolExecutor(4) as pool,
        agent_of(url, "loud-aaaaaaaa", tmp_path / "loud") as loud,
        agent_of(url, "quiet-aaaaaaaa", tmp_path / "quiet") as quiet,
    ):
        readers = []
        for writer, (name, (owner, rate)) in zip((loud, quiet), JOBS.items(), strict=True):
            pool.submit(print_at, writer, rate)
            token = tmp_path / owner
            token.write_text(owner)
            service = RemoteJobs(url, token, Caller(owner, "/"))
            readers.append(pool.submit(read, service, name))
        ages, sizes = zip(*(reader.result() for reader in readers), strict=True)
    for own in ages:
        assert len(own) == TIMES + 2
        assert sorted(own)[int(len(own) * 0.99)] < PROMISED, [round(age, 2) for age in own]
    assert sizes[0] > RATE / 10 * TIMES
