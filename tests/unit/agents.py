"""An agent beside the files of one job, and a real gateway, for tests of the agent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.journal import journal
from jupyter_to_job.agent.agent import Agent
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.agent.shared_folder import SharedFolder
from jupyter_to_job.exchange import FileExchange, InputFile

from ..gateways import context_of, serving
from . import exchanges
from .exchanges import OUTCOME

JOB = "train-abcdefgh"
SNAPSHOT = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}).encode()
SEGMENT = "attempt-1/journal/00000001.jsonl"
LINE = journal.encode({"k": "start", "t": 1.0})
MIB = 1 << 20
MAX_MEMORY = 128 * MIB
LARGE = 1024 * MIB


def record_job(exchange: FileExchange, input_size: int = 4) -> None:
    """Record a job with one input, all zeros."""
    digest = hashlib.sha256()
    for _ in range(input_size // MIB):
        digest.update(bytes(MIB))
    digest.update(bytes(input_size % MIB))

    def write(target: Path) -> InputFile:
        with target.open("wb") as file:
            file.truncate(input_size)
        return InputFile("data/zeros.bin", digest.hexdigest(), input_size)

    sha256 = hashlib.sha256(SNAPSHOT).hexdigest()
    request = exchanges.request(JOB, owner="ada", snapshot_sha256=sha256)
    assert exchange.create(request, SNAPSHOT, {"data/zeros.bin": write})


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    record_job(made)
    return made


@pytest.fixture
def url(exchange: FileExchange) -> Iterator[str]:
    with context_of(exchange) as context, serving(context) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that agent and runner share."""
    made = tmp_path / "shared"
    made.mkdir()
    return made


@pytest.fixture
def token(tmp_path: Path) -> Path:
    made = tmp_path / "token"
    made.write_text(f"{JOB}/pod-1")
    return made


Start = Callable[[str], Agent]


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def start(folder: Path, token: Path, stop: threading.Event) -> Start:
    """Start an agent of the gateway at a URL."""
    return lambda url: Agent(
        GatewayConnection(url, token, JOB), JOB, SharedFolder(folder), "pod-1", stop
    )


@pytest.fixture
def start_process(folder: Path, token: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start an agent's program."""
    with contextlib.ExitStack() as stack:

        def start(url: str) -> subprocess.Popen[bytes]:
            options = ["--gateway", url, "--token-file", str(token), "--folder", str(folder)]
            command = [sys.executable, "-m", "jupyter_to_job.agent", JOB, *options]
            process = subprocess.Popen(command, env={**os.environ, "POD_UID": "pod-1"})
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def run_in(folder: Path) -> Path:
    """Write what a runner writes that has ended; return its attempt's directory."""
    claim = liveness.claim_attempt(folder / JOB, 1)
    (claim.directory / layout.JOURNAL / "00000001.jsonl").write_bytes(LINE)
    (claim.directory / layout.OUTCOME).write_bytes(documents.encode(OUTCOME))
    claim.release()
    return claim.directory
