"""The use cases in the gateway: snapshot and inputs arrive as blobs, and nothing is published."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path, PurePosixPath

from job_runner.protocol import documents

from ..domain.errors import BadInput, Conflict, Stale
from ..domain.job import Job, Submission
from ..domain.preflight import Preflight
from ..domain.transfer import Transfer
from ..service.jobs import JobService, ServiceContext
from ..service.submitting.preflight import check_choice
from ..service.submitting.submission import Caller
from ..workspace import Frozen, Input, open_regular, summarize_notebook
from .identity import DevPod

BLOBS_FOLDER = ".blobs"


class Blobs:
    """An owner's snapshots and inputs by digest, sent before the submission that names them."""

    def __init__(self, exchange: Path, owner: str) -> None:
        # A folder per owner: nobody can find out by a digest which files others have.
        self._folder = exchange / BLOBS_FOLDER / hashlib.sha256(owner.encode()).hexdigest()[:32]

    def put(self, digest: str, data: bytes) -> None:
        """Store `data`. Raises BadInput if it does not have the digest."""
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadInput("The bytes do not have this digest.", "Send them again.")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        documents.write_bytes_once(self._folder / digest, data)

    def path(self, digest: str) -> Path:
        """Return the path of a blob. Raises Stale if it was not sent."""
        path = self._folder / digest
        if not path.is_file():
            raise Stale(f"The blob {digest[:12]} was not sent.", "Send it, then submit again.")
        return path


class GatewayJobs(JobService):
    """Implements `service.port.Jobs` for one dev pod's owner."""

    def __init__(self, core: ServiceContext, caller: DevPod) -> None:
        # Clients send absolute paths without the leading slash: see `service.remote`.
        super().__init__(
            core,
            Caller(caller.owner, "/", origin=caller.origin, sees_workspace=False),
            wake=lambda *_: None,  # the reconciler in this process needs no waking
        )
        self._blobs = Blobs(core.exchange.root, caller.owner)

    def submit(self, submission: Submission, transfer: Transfer | None = None) -> tuple[Job, bool]:
        """See the port. The snapshot is the blob that `expected_sha256` names."""
        if submission.expected_sha256 is None:
            raise BadInput("A gateway needs expected_sha256.", "Send the snapshot as a blob first.")
        _check_path(submission.notebook)
        data = self._blobs.path(submission.expected_sha256).read_bytes()
        inputs = []
        for path in submission.inputs:
            _check_path(path)
            digest = submission.input_digests.get(path)
            if digest is None:
                raise BadInput("A gateway needs inputs as {path, sha256}.", "Send them as blobs.")
            blob = self._blobs.path(digest)
            inputs.append(Input(path, blob.stat().st_size, partial(open_regular, str(blob), path)))
        kernel = summarize_notebook(data, submission.notebook).kernel
        source = Path("/", submission.notebook)
        return self.submit_frozen(
            submission,
            Frozen(
                submission.notebook, source, data, submission.expected_sha256, kernel, tuple(inputs)
            ),
            transfer=transfer,
        )

    def preflight(self, submission: Submission) -> Preflight:
        """See the port. Only the choice is checked: the gateway does not see the workspace."""
        problems = check_choice(self._context.submissions, submission, None, self._caller)
        return Preflight(tuple(problems), isolated=True)

    def deliver(self, name: str) -> Job:
        """See the port. Raises Conflict while undelivered: the gateway sees no workspace."""
        job = self.get(name)
        if not job.delivery.decided:
            raise Conflict(
                "Results are published from the workspace's side.", "Pull it from there."
            )
        return job


def _check_path(path: str) -> None:
    if ".." in PurePosixPath(path).parts or path.startswith("/") or "\0" in path:
        raise BadInput(f"{path!r} is no workspace path.")
