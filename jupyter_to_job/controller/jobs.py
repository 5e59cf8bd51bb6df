"""The use cases in the gateway: snapshot and inputs arrive as blobs, and nothing is published."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ..backends.kubernetes.mounts import MountPlan
from ..domain.errors import BadInput, Conflict, JobsError, NotFound, Refused, Unavailable
from ..domain.job import Changes, Job, Submission
from ..domain.preflight import Preflight, Problem
from ..domain.run_place import RunPlace
from ..domain.transfer import Transfer
from ..domain.wait import JobWait, Need
from ..exchange import Request
from ..exchange.index import IndexRow
from ..exchange.pieces import require_short_path
from ..flavors.catalog import Choice
from ..service.catalog import describe
from ..service.jobs import JobService, ServiceContext
from ..service.submitting.plan import plan_of
from ..service.submitting.preflight import check_choice, problem_of
from ..service.submitting.submission import Caller
from ..workspace import Frozen, Input, check_count, open_regular
from .callers.dev_pod_problems import dev_pod_problems, require_image, require_user
from .callers.identity import DevPod
from .callers.volumes import JobOrigins, require_same_workspace, volume_path
from .feed.job_event import held_elsewhere
from .intake.blobs import Blobs
from .intake.snapshots import read_snapshot
from .job_tracker import units_of
from .pod_planner import PodPlanner
from .preflight.cluster_checks import ClusterChecks
from .recent_events import RecentEvents


class GatewayJobs(JobService):
    """Implements `service.port.Jobs` for one dev pod's owner.

    An owner's jobs may come from several workspaces with equal paths. Lists and events have those
    of the caller's own workspace, and those that no workspace has any more. Without `checks`
    preflight does not ask the cluster, and without `events` nobody tells those of a job.
    """

    def __init__(
        self,
        core: ServiceContext,
        caller: DevPod,
        origins: JobOrigins,
        planner: PodPlanner,
        checks: ClusterChecks | None = None,
        events: RecentEvents | None = None,
    ) -> None:
        self._planner = planner
        self._checks = checks
        self._events = events
        self._is_starting = planner.is_starting()
        architecture = planner.architecture_of(caller.origin.get("node"))
        self._origin = {**caller.origin, "architecture": architecture}
        self._dev_pod = replace(caller, origin=self._origin)
        # Clients send absolute paths without the leading slash: see `service.remote`.
        # By its nonce the controller knows a Job that it made from one that somebody else made.
        origin = {**self._origin, "nonce": secrets.token_hex(16)}
        super().__init__(
            core,
            Caller(
                caller.owner,
                "/",
                caller.groups,
                origin=origin,
                sees_workspace=False,
                identify_notebook=lambda path: str(volume_path(caller.origin, path)),
                place_run=self._place_run,
                admit=self._admit,
            ),
            wake=lambda *_: None,  # the reconciler in this process needs no waking
        )
        self._blobs = Blobs(core.exchange.root, caller.owner)
        self._origins = origins

    def _freeze(self, submission: Submission) -> tuple[Submission, Frozen]:
        """Return the submission and its files. `expected_sha256` names the snapshot's blob."""
        self._require_nodes()
        require_user(self._origin)
        if submission.expected_sha256 is None:
            raise BadInput("A gateway needs expected_sha256.", "Send the snapshot as a blob first.")
        _check_path(submission.notebook)
        for path in submission.inputs:
            _check_path(path)
        check_count(submission.inputs)
        data, kernel = read_snapshot(self._blobs, submission.expected_sha256, submission.notebook)
        inputs = []
        for path in submission.inputs:
            digest = submission.input_digests.get(path)
            if digest is None:
                raise BadInput("A gateway needs inputs as {path, sha256}.", "Send them as blobs.")
            blob = self._blobs.path(digest)
            opens = partial(open_regular, str(blob), path)
            inputs.append(Input(path, blob.stat().st_size, opens, digest, blob))
        source = Path("/", submission.notebook)
        return submission, Frozen(
            submission.notebook, source, data, submission.expected_sha256, kernel, tuple(inputs)
        )

    def details(self, name: str) -> Job:
        """See the port."""
        job = super().details(name)
        return job if self._events is None else replace(job, events=self._events.of(name))

    def flavors(self) -> dict[str, Any]:
        """See the port: how many of a device there are is what the cluster's nodes say."""
        context = self._context
        catalog = context.catalog()
        return describe(
            catalog,
            self._caller.groups,
            context.backend.resources(),
            self._planner.units(catalog, self._origin),
        )

    def preflight(self, submission: Submission) -> Preflight:
        """See the port: the choice, what of the dev pod comes along, and what the cluster says.

        The gateway does not see the workspace. Raises Unavailable while the controller is starting.
        """
        self._require_nodes()
        submissions = self._context.submissions
        problems = list(check_choice(submissions, submission, None, self._caller))
        try:
            choice = submissions.choose(submission, self._caller)
        except JobsError:  # told above
            return Preflight(tuple(problems), isolated=True)
        request = submissions.trial(submission, self._caller)
        plan = self._plan_mounts(choice, Path("/", submission.notebook))
        problems += [*self._lack_of_room(), *self._lack_of_queue(choice)]
        problems += dev_pod_problems(self._dev_pod, choice, plan)
        lack = self._planner.lack(choice, self._origin)
        if lack is not None:
            problems.append(Problem("no_node", lack.message, lack.hint, blocking=False))
        preflight = Preflight(
            isolated=request.isolated,
            mounts=request.mounts,
            plan=plan_of(request, self._origin),
            wait=self._wait_for(request, choice),
        )
        if self._checks is not None:
            problems += self._checks.problems(request, self._origin)
            preflight = replace(preflight, image=self._checks.image(request, self._origin))
        return replace(preflight, problems=tuple(problems))

    def _wait_for(self, request: Request, choice: Choice) -> JobWait:
        """Return what a job would wait for: fewer devices of its kind are free than it needs."""
        wait = self._context.forecasts.of_trial(request)
        units = self._planner.units(self._context.catalog(), self._origin).get(choice.device_name)
        needed = units_of(request)
        if units is None or units.free is None or units.free >= needed:
            return wait
        need = Need(choice.device_name, str(needed), str(units.free))
        return replace(wait, needs=(need,))

    def _require_nodes(self) -> None:
        """Raise Unavailable until the nodes are known, or are known not to be told.

        Which volumes come along depends on them.
        """
        if self._is_starting:
            raise Unavailable(
                "The controller is starting: which volumes a job can mount is not known yet.",
                "Try again in a moment.",
            )

    def _admit(self, choice: Choice) -> None:
        """Raise Refused for a choice that no job of this dev pod may run with."""
        require_image(self._dev_pod, choice)
        self._planner.require_queue(choice)

    def _lack_of_queue(self, choice: Choice) -> Iterator[Problem]:
        """Yield that a choice's jobs would wait for a Kueue that is not there."""
        try:
            self._planner.require_queue(choice)
        except Refused as error:
            yield Problem("no_kueue", error.message, error.hint)

    def _lack_of_room(self) -> Iterator[Problem]:
        """Yield why the exchange takes no new job."""
        try:
            self._context.admit_job(self._caller.owner, 0, 0)
        except JobsError as error:
            yield problem_of(error)

    def _plan_mounts(self, choice: Choice, source: Path) -> MountPlan:
        """Return which of the dev pod's volumes a job with this choice mounts."""
        return self._planner.mounts(choice, self._origin, str(source.parent))

    def _place_run(self, choice: Choice, source: Path) -> RunPlace:
        plan = self._plan_mounts(choice, source)
        return RunPlace(plan.isolated, plan.paths, tuple(map(str, plan.left_behind)))

    def rerun(self, name: str, changes: Changes, transfer: Transfer | None = None) -> Job:
        """See the port. Raises Conflict if the notebook came from another workspace."""
        self._require_nodes()
        require_user(self._origin)
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
    require_short_path(path)
