"""Where the conformance suite stands on a cluster: dev pods of its own, and their tokens.

The test is the process in the dev pod: it freezes, submits and publishes on this machine, with a
token that is bound to a pod. That pod is never scheduled, so it costs nothing.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from pathlib import Path

from job_runner.protocol import layout
from jupyter_to_job.backends.kubernetes import KubernetesBackend
from jupyter_to_job.backends.kubernetes.manifest import AUDIENCE
from jupyter_to_job.domain.errors import NotFound
from jupyter_to_job.domain.job import Job
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller, local_environment
from tests.cluster.box.images import Images
from tests.cluster.product import (
    NOWHERE,
    DevPod,
    dev_pod_manifest,
)
from tests.cluster.scenes import RUNNER, find_process
from tests.conformance.place import Place
from tests.held_backend import Hold

_numbers = itertools.count()


class OwnJobs(FileExchange):
    """The controller's exchange, as if it had the jobs of some owners only."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, is_private=False)
        self.owners: set[str] = set()

    def jobs(self) -> frozenset[str]:
        """See the exchange."""
        return frozenset(name for name in super().jobs() if self._is_own(name))

    def _is_own(self, name: str) -> bool:
        try:
            return self.request(name).owner in self.owners
        except NotFound:  # removed meanwhile
            return False


class ClusterPlace(Place):
    """A workspace on this machine, whose users are owners of their own behind the gateway.

    They have dev pods beside a given one.
    """

    has_queue = KubernetesBackend.has_queue
    runs_code = True
    bound = 180.0
    pause = 0.25

    def __init__(self, folder: Path, hold: Hold | None, beside: DevPod, images: Images) -> None:
        super().__init__(folder, hold)
        box, controller = beside.box, beside.controller
        self.exchange = self.own = OwnJobs(controller.exchange(box).root)
        self._box = box
        self._namespace = beside.namespace
        self._images = images
        self._folder = folder
        self._number = next(_numbers)
        self.url = controller.url(box)
        self._tokens: dict[str, Path] = {}
        self._lock = threading.Lock()

    def service_of(self, owner: str, workspace: Path | None = None) -> RemoteJobs:
        """See the place."""
        return self.service_at(self.url, owner, workspace)

    def service_at(self, url: str, owner: str = "me", workspace: Path | None = None) -> RemoteJobs:
        """Return the use cases of a user who reaches the gateway by another address."""
        caller = Caller(
            owner, str(workspace or self.workspace), environment=local_environment(sys.executable)
        )
        return RemoteJobs(url, self.token_of(owner), caller)

    def token_of(self, owner: str) -> Path:
        """Return the file with an owner's token."""
        with self._lock:
            if owner not in self._tokens:
                self._tokens[owner] = self._token_of_dev_pod(owner)
            return self._tokens[owner]

    def _token_of_dev_pod(self, owner: str) -> Path:
        """Make a dev pod of an owner that is in this place only; return the file of its token."""
        user, namespace = f"{owner}-{self._number}", self._namespace
        self.own.owners.add(f"{namespace}/{user}")
        name = f"dev-{self._number}-{len(self._tokens)}"
        pod = dev_pod_manifest(self._images, namespace, name, user)
        pod["spec"]["schedulingGates"] = [{"name": "example.org/never"}]
        self._box.apply(pod)
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={name}")
        token = self._box.kubectl(
            "create", "token", "default", "-n", namespace, f"--audience={AUDIENCE}", *bound
        )
        file = self._folder / f"token-{name}"
        file.write_text(token)
        return file

    def held_job(self) -> Job:
        """See the place."""
        if self.hold == "running":
            return self.running_job()
        name = self.submit(**NOWHERE).name

        def look() -> Job | None:
            job = self.service.get(name)
            return job if job.reason == "Unschedulable" else None

        return self.until(look, f"{name} waits for a node")

    def frozen_input(self, name: str, path: str) -> bytes | None:
        """See the place: behind a gateway paths are absolute ones without their first slash."""
        absolute = str(self.workspace / path).lstrip("/")
        return self.exchange.read(name, f"{layout.INPUTS}/{absolute}")

    def kill_runner(self, name: str) -> None:
        """See the place: processes of the box are this machine's."""
        pid = find_process(RUNNER, name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Delete the jobs that are left, and with them what they hold."""
        for job in self.service.find().jobs:
            self.service.delete(job.name)
