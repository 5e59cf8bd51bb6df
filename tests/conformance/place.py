"""A workspace, an exchange and a service on one backend."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from jupyter_client.kernelspec import KernelSpecManager

from job_runner.protocol import layout
from jupyter_to_job.backends.local import LocalBackend
from jupyter_to_job.backends.port import Backend
from jupyter_to_job.domain.job import Job, State, Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.delivery import deliver, deliver_if_pulling
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.port import Jobs
from jupyter_to_job.service.submitting.submission import (
    Caller,
    KernelResolver,
    local_environment,
)
from jupyter_to_job.wiring.kernels import kernel_resolver

from .. import notebooks
from ..held_backend import HeldBackend, Hold
from ..processes import BOUND, kill, processes, until

Found = TypeVar("Found")
PRINTS = "# kept\nprint('# kept')"
"""A cell whose output has `# kept` whether a kernel runs it or its source is printed."""


class Place(ABC):
    """What a test stands on. `hold` keeps its jobs `queued` or `running` until a cancel."""

    exchange: FileExchange
    """Has the jobs of this place and no others."""
    runs_code: bool
    """Whether cells are executed."""
    bound = BOUND
    """Seconds for which a test waits, at most; and between two looks."""
    pause = 0.02

    def __init__(self, folder: Path, hold: Hold | None) -> None:
        self.workspace = folder / "workspace"
        self.hold = hold
        notebooks.write(self.workspace / "dir" / "Train model.ipynb", PRINTS, "1 + 1")

    @cached_property
    def service(self) -> Jobs:
        """The use cases of the user `me`."""
        return self.service_of("me")

    @property
    @abstractmethod
    def has_queue(self) -> bool:
        """Whether jobs have positions and priorities, by the backend's own word."""

    @abstractmethod
    def service_of(self, owner: str, workspace: Path | None = None) -> Jobs:
        """Return the use cases of a user, in a workspace."""

    @abstractmethod
    def held_job(self) -> Job:
        """Return a job that is in the state of `hold`."""

    def frozen_input(self, name: str, path: str) -> bytes | None:
        """Return what was frozen of a file of the workspace."""
        return self.exchange.read(name, f"{layout.INPUTS}/{path}")

    @abstractmethod
    def kill_runner(self, name: str) -> None:
        """Kill the runner of a job, without a word to it."""

    def until(self, condition: Callable[[], Found | None], what: str) -> Found:
        """Wait for a condition; return its value once it is true."""
        return until(condition, what, self.bound, self.pause)

    def submit(self, notebook: str = "dir/Train model.ipynb", **asked: Any) -> Job:
        return self.service.submit(Submission(notebook, **asked))[0]

    def decided(self, name: str) -> Job:
        """Return the job once its delivery is decided."""

        def look() -> Job | None:
            job = deliver_if_pulling(self.service, self.service.get(name))
            return job if job.decided else None

        return self.until(look, f"{name} is decided")

    def the_job(self) -> Job:
        """Return the one job that there is."""
        (job,) = self.service.find().jobs
        return job

    def in_state(self, name: str, state: State) -> Job:
        def look() -> Job | None:
            job = self.service.get(name)
            return job if job.state is state else None

        return self.until(look, f"{name} is {state.value}")

    def result(self, job: Job) -> Path:
        assert job.delivery.path is not None
        return self.workspace / job.delivery.path

    def running_job(self) -> Job:
        """Return a job whose one cell has printed, and will not end by itself."""
        long = "print('# kept', flush=True)\nimport time; time.sleep(600)"
        notebooks.write(self.workspace / "dir" / "long.ipynb", long)
        name = self.submit("dir/long.ipynb").name
        self.until(lambda: "# kept" in self.service.logs(name).text, "the cell printed")
        return self.in_state(name, State.RUNNING)


class HostPlace(Place):
    """Everything is on this machine: an exchange in files, and a service in this process."""

    resolve_kernel: KernelResolver | None = None
    """Set where the backend's runners have the kernels of this process."""

    def __init__(self, folder: Path, hold: Hold | None) -> None:
        super().__init__(folder, hold)
        self.exchange = FileExchange(folder / "exchange")
        self.core = ServiceContext(self.exchange, self.backend(), load_catalog)

    @abstractmethod
    def backend(self) -> Backend:
        """Return the backend, for jobs of this exchange."""

    @property
    def has_queue(self) -> bool:
        return self.core.backend.has_queue

    def service_of(self, owner: str, workspace: Path | None = None) -> JobService:
        root = workspace or self.workspace
        caller = Caller(
            owner,
            str(root),
            environment=local_environment(sys.executable),
            resolve_kernel=self.resolve_kernel,
        )
        return JobService(self.core, caller)


class MemoryPlace(HostPlace):
    runs_code = False

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

    def kill_runner(self, name: str) -> None:
        raise NotImplementedError(f"{name} has no runner")


class LocalPlace(HostPlace):
    runs_code = True
    resolve_kernel = staticmethod(kernel_resolver(KernelSpecManager))

    def backend(self) -> Backend:
        return LocalBackend(self.exchange, "cpu=1,memory=8Gi" if self.hold else "cpu=2,memory=8Gi")

    def held_job(self) -> Job:
        running = self.running_job()
        if self.hold == "queued":  # the one slot is taken
            return self.in_state(self.submit().name, State.QUEUED)
        return running

    def kill_runner(self, name: str) -> None:
        (runner,) = processes("job_runner", self.exchange.directory(name))
        kill(runner)
