"""A workspace, an exchange and a service on one backend."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager

from job_runner.protocol import layout
from jupyter_to_job.backends.local import LocalBackend
from jupyter_to_job.backends.port import Backend
from jupyter_to_job.domain.job import Job, State, Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.delivery import deliver
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import (
    Caller,
    KernelResolver,
    local_environment,
)
from jupyter_to_job.wiring.kernels import kernel_resolver

from .. import notebooks
from ..held_backend import HeldBackend, Hold
from ..processes import until

PRINTS = "# kept\nprint('# kept')"
"""A cell whose output has `# kept` whether a kernel runs it or its source is printed."""


class Place(ABC):
    """What a test stands on. `hold` keeps its jobs `queued` or `running` until a cancel."""

    resolve_kernel: KernelResolver | None = None
    """Set where the backend's runners have the kernels of this process."""

    def __init__(self, folder: Path, hold: Hold | None) -> None:
        self.workspace = folder / "workspace"
        self.exchange = FileExchange(folder / "exchange")
        self.hold = hold
        notebooks.write(self.workspace / "dir" / "Train model.ipynb", PRINTS, "1 + 1")
        self.core = ServiceContext(self.exchange, self.backend(), load_catalog)
        self.service = self.service_of("me")

    @abstractmethod
    def backend(self) -> Backend:
        """Return the backend, for jobs of this exchange."""

    @abstractmethod
    def held_job(self) -> Job:
        """Return a job that is in the state of `hold`."""

    def service_of(self, owner: str, workspace: Path | None = None) -> JobService:
        root = workspace or self.workspace
        caller = Caller(
            owner,
            str(root),
            environment=local_environment(sys.executable),
            resolve_kernel=self.resolve_kernel,
        )
        return JobService(self.core, caller)

    def submit(self, notebook: str = "dir/Train model.ipynb", **asked: Any) -> Job:
        return self.service.submit(Submission(notebook, **asked))[0]

    def decided(self, name: str) -> Job:
        """Return the job once its delivery is decided."""
        until(lambda: self.service.get(name).decided, f"{name} is decided")
        return self.service.get(name)

    def the_job(self) -> Job:
        """Return the one job that there is."""
        (job,) = self.service.find().jobs
        return job

    def in_state(self, name: str, state: State) -> Job:
        def look() -> Job | None:
            job = self.service.get(name)
            return job if job.state is state else None

        return until(look, f"{name} is {state.value}")

    def result(self, job: Job) -> Path:
        assert job.delivery.path is not None
        return self.workspace / job.delivery.path


class MemoryPlace(Place):
    def backend(self) -> Backend:
        return HeldBackend(self.exchange, self.settle, self.hold)

    def settle(self, name: str) -> None:
        if self.exchange.document(name, layout.DELETE) is not None:
            self.exchange.remove(name)
        else:
            deliver(self.exchange, name)

    def held_job(self) -> Job:
        assert self.hold is not None
        return self.in_state(self.submit().name, State(self.hold))


class LocalPlace(Place):
    resolve_kernel = staticmethod(kernel_resolver(KernelSpecManager))

    def backend(self) -> Backend:
        return LocalBackend(self.exchange, "cpu=1,memory=8Gi" if self.hold else "cpu=2,memory=8Gi")

    def held_job(self) -> Job:
        long = "print('# kept', flush=True)\nimport time; time.sleep(600)"
        notebooks.write(self.workspace / "dir" / "long.ipynb", long)
        running = self.submit("dir/long.ipynb")
        self.in_state(running.name, State.RUNNING)
        if self.hold == "queued":  # the one slot is taken
            return self.in_state(self.submit().name, State.QUEUED)
        until(lambda: "# kept" in self.service.logs(running.name).text, "the cell printed")
        return running
