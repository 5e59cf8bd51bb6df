"""Our extension: what its button sends, and an exchange filled by the exchange's own functions."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from job_runner.protocol import layout
from job_runner.protocol.times import rfc3339
from jupyter_to_job.domain.names import job_name
from jupyter_to_job.exchange import FileExchange

from .client import Client
from .server import NOTEBOOK, MeasuredServer

API = "/jupyter-to-job/api"
PAGE = 50


class OurServer(MeasuredServer):
    """The server side of SUBMIT JOB."""

    name = "ours"
    extension = "jupyter_to_job.server"

    @property
    def exchange(self) -> Path:
        """Return the default place of the exchange: nothing is configured."""
        return self.root / "data" / "jupyter-to-job" / "exchange"

    def submit(self, client: Client) -> str:
        body = {
            "notebook": NOTEBOOK,
            "expected_sha256": hashlib.sha256((self.workspace / NOTEBOOK).read_bytes()).hexdigest(),
            "flavor": "small",
            "device": "cpu",
        }
        job = client.request("POST", f"{API}/jobs", body, Idempotency_Key=str(uuid.uuid4()))
        return str(job["name"])

    def time_preflight(self, client: Client) -> float:
        """Return the seconds until the dialog has what it shows."""
        client.request("POST", f"{API}/preflight", {"notebook": NOTEBOOK})
        return client.elapsed

    def unfinished(self, jobs: Collection[str]) -> set[str]:
        return {job for job in jobs if not self.result_path(job).exists()}

    def result_path(self, job: str) -> Path:
        return self.workspace / f"{job}.ipynb"

    def list_jobs(self, client: Client) -> int:
        return len(client.request("GET", f"{API}/jobs?limit={PAGE}")["jobs"])

    def add_jobs(self, jobs: int, sample: str) -> None:
        """Copy a delivered job: submitted a minute earlier each, and delivered under its name."""
        exchange = FileExchange(self.exchange)
        request, model = exchange.request(sample), exchange.directory(sample)
        snapshot = (model / layout.SNAPSHOT).read_bytes()
        delivery = exchange.document(sample, layout.DELIVERY)
        assert delivery is not None, f"{sample} was not delivered"
        submitted = datetime.fromisoformat(request.submitted.replace("Z", "+00:00"))

        def copy(number: int) -> None:
            name = job_name(NOTEBOOK, owner=request.owner)
            moment = rfc3339(submitted - timedelta(minutes=number))
            exchange.create(replace(request, name=name, submitted=moment, key=None), snapshot)
            attempt = layout.attempt_dir(exchange.directory(name), 1)
            shutil.copytree(layout.attempt_dir(model, 1), attempt)
            delivered = {**delivery, "path": f"{name}.ipynb"}
            exchange.write_once(name, layout.DELIVERY, delivered)

        with ThreadPoolExecutor(8) as pool:  # it waits for the disk, mostly
            list(pool.map(copy, range(len(exchange.jobs()), jobs)))
