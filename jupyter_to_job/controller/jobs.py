"""The use cases in the gateway: snapshot and inputs arrive as blobs, and nothing is published."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path, PurePosixPath

from ..domain.errors import BadInput, Conflict, NotFound
from ..domain.job import Changes, Job, Submission
from ..domain.preflight import Preflight
from ..domain.transfer import Transfer
from ..exchange import Request
from ..exchange.index import IndexRow
from ..service.jobs import JobService, ServiceContext
from ..service.submitting.preflight import check_choice
from ..service.submitting.submission import Caller
from ..workspace import Frozen, Input, open_regular, summarize_notebook
from .callers.identity import DevPod
from .callers.volumes import JobOrigins, require_same_workspace, volume_path
from .feed.job_event import held_elsewhere
from .intake.blobs import Blobs


class GatewayJobs(JobService):
    """Implements `service.port.Jobs` for one dev pod's owner.

    An owner's jobs may come from several workspaces with equal paths. Lists and events have those
    of the caller's own workspace, and those that no workspace has any more.
    """

    def __init__(self, core: ServiceContext, caller: DevPod, origins: JobOrigins) -> None:
        # Clients send absolute paths without the leading slash: see `service.remote`.
        # By its nonce the controller knows a Job that it made from one that somebody else made.
        origin = {**caller.origin, "nonce": secrets.token_hex(16)}
        super().__init__(
            core,
            Caller(
                caller.owner,
                "/",
                caller.groups,
                origin=origin,
                sees_workspace=False,
                identify_notebook=lambda path: str(volume_path(caller.origin, path)),
            ),
            wake=lambda *_: None,  # the reconciler in this process needs no waking
        )
        self._blobs = Blobs(core.exchange.root, caller.owner)
        self._origin = caller.origin
        self._origins = origins

    def submit(self, submission: Submission, transfer: Transfer | None = None) -> tuple[Job, bool]:
        """See the port. The snapshot is the blob that `expected_sha256` names."""
        if submission.expected_sha256 is None:
            raise BadInput("A gateway needs expected_sha256.", "Send the snapshot as a blob first.")
        _check_path(submission.notebook)
        data = self._blobs.snapshot(submission.expected_sha256)
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

    def rerun(self, name: str, changes: Changes, transfer: Transfer | None = None) -> Job:
        """See the port. Raises Conflict if the notebook came from another workspace."""
        require_same_workspace(self._origins, self._own_request(name), self._origin)
        return super().rerun(name, changes, transfer)

    def deliver(self, name: str) -> Job:
        """Return the job if the caller may publish its result: the gateway sees no workspace.

        Raises Conflict if the notebook came from another workspace.
        """
        request = self._own_request(name)
        if not self.get(name).delivery.path:
            require_same_workspace(self._origins, request, self._origin)
        return self.get(name)

    def _is_listed(self, subject: Request | IndexRow) -> bool:
        """See `JobService`. Jobs without a claim are listed everywhere: their pod may be gone."""
        if not self._is_visible(subject):
            return False
        try:
            place = self._origins.volume_path(subject.name, subject.source)
        except NotFound:  # removed just now
            return False
        return not place.is_claim or place == volume_path(self._origin, subject.source)

    def _for_reader(self, job: Job, subject: Request | IndexRow) -> Job:
        """See `JobService`. The reader learns who has to publish a result that it cannot."""
        job = super()._for_reader(job, subject)
        if held_elsewhere(job) is not job and isinstance(subject, Request):
            try:
                require_same_workspace(self._origins, subject, self._origin)
            except Conflict:
                return held_elsewhere(job)
        return job


def _check_path(path: str) -> None:
    if ".." in PurePosixPath(path).parts or path.startswith("/") or "\0" in path:
        raise BadInput(f"{path!r} is no workspace path.")
