"""The server's feed: what is wrong with one job keeps nobody from hearing of the others."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.domain.errors import Damaged
from jupyter_to_job.domain.job import Job
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.server.feed import Feed
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from ..processes import until
from . import exchanges


class Pulling(JobService):
    """A service whose results this process has to pull, and one of them cannot be."""

    pulls = True

    def deliver(self, name: str) -> Job:
        if name == "bad-aaaaaaaa":
            raise Damaged("bad-aaaaaaaa has no result.")
        return super().deliver(name)


def test_one_that_cannot_be_delivered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    exchange = FileExchange(tmp_path / "exchange")
    (tmp_path / "workspace").mkdir()
    workspace = str(tmp_path / "workspace")
    names = ["bad-aaaaaaaa", *(f"good-{letter * 8}" for letter in "abcdef")]
    for name in names:
        exchanges.end(exchanges.add(exchange, name, workspace=workspace))
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    told: dict[str, str] = {}

    def tell(job: Any) -> None:
        told[job.name] = job.delivery.state.value

    feed = Feed(Pulling(core, Caller("me", workspace)), tell, logging.getLogger("feed"))
    feed.start()
    expected = {name: "pending" if name.startswith("bad") else "delivered" for name in names}
    until(lambda: told == expected, "all are told of")
    feed.stop()
    assert sum("cannot be delivered" in line for line in caplog.messages) == 1
