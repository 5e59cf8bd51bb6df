"""The dispatcher's loop: what it does with errors of one job."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from job_runner.protocol import layout
from jupyter_to_job.backends.local.hosts import HostWatch
from jupyter_to_job.backends.local.slots import Machine
from jupyter_to_job.dispatcher.loop import Dispatcher
from jupyter_to_job.exchange import FileExchange

from . import exchanges

JOB = "train-abcdefgh"


def test_a_missing_file_is_no_removed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Here the file is the dispatcher's Python, with which it would end a cancelled job."""
    exchange = FileExchange(tmp_path)
    directory = exchanges.add(exchange, JOB)
    exchange.write_once(JOB, layout.CANCEL, {"time": exchanges.ENDED})
    dispatcher = Dispatcher(exchange, Machine("cpu=1,memory=1Gi"), "here", HostWatch(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert dispatcher.poll(set())
    assert f"{JOB}: tried again in 10 s" in caplog.text
    caplog.clear()
    shutil.rmtree(directory)
    dispatcher.poll(set())
    assert not dispatcher.has_work()
    assert not caplog.records
