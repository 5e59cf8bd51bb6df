"""What a job prints reaches its readers while it is news, and holds up nobody else's."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
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
SECONDS = 4.0
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
        while not (folder / job).exists():
            assert process.poll() is None, "the agent ended"
            time.sleep(0.02)
        claim = liveness.claim_attempt(folder / job, 1)
        yield JournalWriter(claim.directory / layout.JOURNAL)
        process.kill()


def print_at(writer: JournalWriter, rate: int, stop: threading.Event) -> None:
    """Print at a rate, ten times a second, each time with the time."""
    writer.append({"k": "start", "t": time.time(), "v": 1, "kernel": "python3", "sockets": ""})
    text = "x" * (rate // 10)
    while not stop.wait(0.1):
        output = {"output_type": "stream", "name": "stdout", "text": text}
        writer.append({"k": "output", "i": 0, "t": time.time(), "output": output})


def read(jobs: RemoteJobs, name: str, end: float) -> tuple[list[float], int]:
    """Follow a job as the live view does; return how old its records were, and their bytes."""
    ages: list[float] = []
    offset = 0
    for change in jobs.changes([name]):
        while change is not None and isinstance(size := getattr(change, "journal", None), int):
            if offset >= size:
                break
            answer = jobs.journal(name, offset)
            offset = answer.next
            ages += [time.time() - record["t"] for record in answer.records]
        if time.monotonic() > end:
            break
    return ages, offset


def test_five_megabytes_a_second(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path / "exchange")
    sha256 = hashlib.sha256(SNAPSHOT).hexdigest()
    for name, (owner, _) in JOBS.items():
        request = exchanges.request(name, owner=owner, snapshot_sha256=sha256)
        assert exchange.create(request, SNAPSHOT)
    stop = threading.Event()
    with (
        own_process(exchange) as (url, _),
        ThreadPoolExecutor(4) as pool,
        agent_of(url, "loud-aaaaaaaa", tmp_path / "loud") as loud,
        agent_of(url, "quiet-aaaaaaaa", tmp_path / "quiet") as quiet,
    ):
        end = time.monotonic() + SECONDS
        readers = []
        for writer, (name, (owner, rate)) in zip((loud, quiet), JOBS.items(), strict=True):
            pool.submit(print_at, writer, rate, stop)
            token = tmp_path / owner
            token.write_text(owner)
            service = RemoteJobs(url, token, Caller(owner, "/"))
            readers.append(pool.submit(read, service, name, end))
        ages, sizes = zip(*(reader.result() for reader in readers), strict=True)
        stop.set()
    for own in ages:
        assert len(own) >= 10
        assert sorted(own)[int(len(own) * 0.99)] < PROMISED, [round(age, 2) for age in own]
    assert sizes[0] > RATE * SECONDS / 4  # nothing was left out on the way
