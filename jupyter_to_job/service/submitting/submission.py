"""Checks a submission, resolves it, and records it: nothing else is needed to run the job."""

from __future__ import annotations

import os
import posixpath
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from job_runner.protocol import layout, times

from ... import logs
from ...backends.port import Backend
from ...domain.environment import variables_for_runs
from ...domain.errors import Conflict, JobsError, NeverFits, NotFound, Refused, Unavailable
from ...domain.job import Submission
from ...domain.names import job_name, key_digest
from ...domain.run_place import RunPlace
from ...domain.submission_rules import validate_submission
from ...domain.transfer import Transfer
from ...exchange import FileExchange, Request
from ...exchange.request import Environment
from ...workspace import (
    Frozen,
    Workspace,
    check_template,
    freeze,
    freeze_input,
    make_folder,
    resolve_output,
    results_folder,
)
from ...workspace.freezing.freeze import MAX_NOTEBOOK
from ..catalog import fitting
from .alternatives import alternative_flavors
from .plan import plan_of, require_plan
from .submission_digest import Digests, digests_of

if TYPE_CHECKING:
    from ...flavors.catalog import Catalog, Choice

_MAX_NAME_DRAWS = 8

KernelResolver = Callable[[str], dict[str, Any] | None]
PlaceRun = Callable[["Choice", Path], RunPlace]
AdmitJob = Callable[[str, int, int], None]
"""Is called before a job is recorded, and may refuse it.

It gets the owner, the bytes of all inputs, and of those that are not in the exchange already.
"""
DEFAULT_KERNEL = "python3"
TRIAL_NAME = "preflight-aaaaaaaa"
"""The name of requests that are tried, and of others until they are recorded."""


@dataclass(frozen=True)
class Caller:
    """The person who submits, and the machine that the notebook is on.

    - `workspace`: the absolute root on the caller's side.
    - `environment`: the interpreter and variables that the runner starts with.
    - `origin`: what a gateway read from the dev pod.
    - `sees_workspace`: whether this process reaches the workspace, and a runner finds it at the
      same path.
    - `admit`: raises Refused for a choice that nothing of this caller may run with.
    - `place_run`: returns where a run works by its choice and its source, where that differs.
    - `enforce_memory`: whether the runner holds its kernel to the flavor's memory. A container
      does that by itself.
    - `roots`: the folders outside the workspace that links in it may lead to.
    - `results`: the folder for results, as the setting has it; "": beside the notebook.
    - `input_cap`: the bytes that the inputs may have in all.
    - `max_notebook`: the bytes that the notebook may have.
    - `identify_notebook`: returns what tells the notebook at an absolute path from others of this
      owner, and ends in its name; by default that path.
    - `resolve_kernel`: returns what a request records as `kernel_spec` for a kernel's name, or
      raises UnknownChoice. None: this process does not know the environment's kernels.
    """

    owner: str
    workspace: str
    groups: frozenset[str] = frozenset()
    environment: Environment = field(default_factory=Environment)
    origin: dict[str, Any] | None = None
    sees_workspace: bool = True
    enforce_memory: bool = False
    roots: tuple[str, ...] = ()
    results: str = ""
    input_cap: int | None = None
    max_notebook: int = MAX_NOTEBOOK
    identify_notebook: Callable[[str], str] = str
    resolve_kernel: KernelResolver | None = None
    place_run: PlaceRun | None = None
    admit: Callable[[Choice], None] = lambda _choice: None

    def run_place(self, submission: Submission, choice: Choice) -> RunPlace:
        """Return where the run of a submission works."""
        place = RunPlace(isolated=not self.sees_workspace)
        if self.place_run is not None:
            place = self.place_run(choice, Path(self.workspace, submission.notebook))
        return replace(place, isolated=place.isolated or submission.isolated)

    def kernel_spec(self, name: str | None) -> dict[str, Any] | None:
        """Return the specification of the kernel that a notebook names. Raises UnknownChoice."""
        return None if self.resolve_kernel is None else self.resolve_kernel(name or DEFAULT_KERNEL)

    def open_workspace(self) -> Workspace:
        """Return the caller's file tree, where this process reaches it."""
        return Workspace(Path(self.workspace), [Path(root) for root in self.roots])

    def with_results(self, submission: Submission) -> Submission:
        """Return a submission with the folder of its result, where settings choose it.

        Those of a browser come with the submission. Raises BadInput for what is no folder, or leads
        out of the workspace.
        """
        template = submission.results or self.results
        if submission.output is not None or not template:
            return replace(submission, results=None)
        check_template(template)
        folder = results_folder(self.open_workspace(), submission.notebook, template)
        return replace(submission, results=folder)

    def make_folder_of(self, output: str | None) -> None:
        """Make the folder that a resolved output names, if this process reaches the workspace.

        Raises BadInput.
        """
        if output is not None and output.endswith("/") and self.sees_workspace:
            make_folder(self.open_workspace(), output)


@dataclass(frozen=True)
class SubmissionService:
    """Turns submissions into recorded jobs."""

    exchange: FileExchange
    backend: Backend
    catalog: Callable[[], Catalog]
    output_cap: int | None = None
    admit_job: AdmitJob = lambda _owner, _size, _added: None
    has_hooks: Callable[[], bool] = bool
    """Tells whether hooks may have to be told of jobs."""

    def submit(
        self,
        submission: Submission,
        frozen: Frozen,
        caller: Caller,
        transfer: Transfer | None = None,
    ) -> tuple[Request, bool]:
        """Record the job; return its request and whether it is new.

        Raises what `validate_submission` and `choose` do, Conflict where the idempotency key
        belongs to another submission, PlanChanged, and Withdrawn. A refused submission leaves
        nothing behind.
        """
        transfer = transfer or Transfer()
        validate_submission(submission)
        digests = digests_of(submission, caller.workspace, frozen.sha256)
        notebook, key = caller.identify_notebook(posixpath.normpath(frozen.source)), None
        if submission.idempotency_key is not None:
            key = key_digest(caller.owner, notebook, submission.idempotency_key)
        for draw in range(_MAX_NAME_DRAWS):
            # A retry finds its job even if that could not be submitted any more.
            claimed = None if key is None else self.exchange.claimed_name(f"{key}-{draw + 1}")
            earlier = self._earlier(claimed, key, digests) if claimed is not None else None
            if earlier is not None:
                return earlier, False
            choice = self.choose(submission, caller)
            caller.admit(choice)
            kernel_spec = caller.kernel_spec(frozen.kernel)
            request = self._request(submission, frozen, caller, choice, digests.current)
            require_plan(submission.plan, plan_of(request, caller.origin))
            name = self._name(submission, notebook, caller, key, draw)
            request = replace(request, name=name, kernel_spec=kernel_spec, key=key)
            caller.make_folder_of(request.output)
            # The first name of a key follows from the key: a later submission claims it again.
            claim = f"{key}-1" if key is not None and draw == 0 else None
            created = self._create(request, frozen, caller, transfer, claim)
            if created is not None:
                return created, True
            earlier = self._earlier(name, key, digests)
            if earlier is not None:  # another process with the same key was faster
                return earlier, False
        raise Conflict("No free job name was found.", "Submit again.")

    def trial(self, submission: Submission, caller: Caller) -> Request:
        """Return the request that a submission would become; nothing is recorded.

        It stands for a notebook that was not read. Raises what `choose` does.
        """
        choice = self.choose(submission, caller)
        source = Path(caller.workspace, submission.notebook)
        frozen = Frozen(submission.notebook, source, b"", "", None)
        request = self._request(submission, frozen, caller, choice, "")
        return replace(request, request_id=None)  # equal trials are equal

    def _request(
        self,
        submission: Submission,
        frozen: Frozen,
        caller: Caller,
        choice: Choice,
        digest: str,
    ) -> Request:
        """Return the request, without a name of its own."""
        source = Path(caller.workspace, frozen.notebook)
        place = caller.run_place(submission, choice)
        neighbours = alternative_flavors(self.catalog(), choice, caller.groups, self.backend.admit)
        limits = [s for s in (submission.max_runtime, choice.flavor.max_runtime) if s is not None]
        return Request(
            name=TRIAL_NAME,
            owner=caller.owner,
            notebook=frozen.notebook,
            source=str(source),
            workspace=caller.workspace,
            roots=caller.roots,
            flavor=choice.flavor_name,
            device=choice.device_name,
            flavor_spec=choice.flavor.model_dump(mode="json", exclude_defaults=True),
            device_spec=choice.device.model_dump(mode="json", exclude_defaults=True),
            demand={k: str(v) for k, v in choice.demand.items()},
            neighbours=neighbours,
            snapshot_sha256=frozen.sha256,
            submitted=times.now(),
            backend=self.backend.name,
            digest=digest,
            isolated=place.isolated,
            inputs_asked=submission.inputs if caller.sees_workspace else None,
            mounts=place.mounts,
            left_behind=place.left_behind,
            cwd=None if place.isolated else str(source.parent),
            environment=caller.environment,
            kernel=frozen.kernel,
            max_runtime=min(limits, default=None),
            output_limit=self.output_cap,
            memory_limit=int(choice.demand["memory"]) if caller.enforce_memory else None,
            request_id=logs.request_id(),
            **_fields_as_submitted(submission),
        )

    def _create(
        self,
        request: Request,
        frozen: Frozen,
        caller: Caller,
        transfer: Transfer,
        claim: str | None,
    ) -> Request | None:
        """Record a job with its inputs; None if the name is taken. A failure frees `claim`."""
        size = sum(item.size for item in frozen.inputs)
        added = sum(item.size for item in frozen.inputs if item.stored is None)
        inputs = {i.path: partial(freeze_input, i, step=transfer.step) for i in frozen.inputs}
        try:
            transfer.expect(size)
            self.admit_job(caller.owner, size, added)
            return self.exchange.create(
                request,
                frozen.data,
                inputs,
                caller.origin,
                transfer.confirm,
                notify=self.has_hooks(),
            )
        except JobsError:
            if claim is not None:
                self.exchange.release_claim(claim)
            raise

    def choose(self, submission: Submission, caller: Caller) -> Choice:
        """Return the flavor and device that a submission gets here.

        Raises UnknownChoice, Refused, BadCatalog, or NeverFits, which says what would fit.
        """
        catalog = self.catalog()
        choice = catalog.choose(submission.flavor, submission.device, caller.groups)
        if submission.priority and not self.backend.has_queue:
            raise Refused("This backend has no line to go first in.", "Leave the priority out.")
        try:
            self.backend.admit(choice.demand)
        except NeverFits as error:
            # The process that published `resources` may have other settings than this one.
            names = fitting(catalog, self.backend.resources(), caller.groups)
            names = [] if choice.flavor_name in names else names
            hint = f"What fits here: {', '.join(names)}." if names else error.hint
            raise NeverFits(error.message, hint) from error
        return choice

    def _name(
        self, submission: Submission, notebook: str, caller: Caller, key: str | None, draw: int
    ) -> str:
        """Return a name to try: for a key always the same one in the same draw, in any process.

        `notebook` is what `identify_notebook` returned.
        """
        seed = submission.idempotency_key if draw == 0 else None
        name = job_name(notebook, owner=caller.owner, key=seed, label=submission.name)
        return name if key is None else self.exchange.claim(f"{key}-{draw + 1}", name)

    def _earlier(self, name: str, key: str | None, digests: Digests) -> Request | None:
        """Return the request of this name if an earlier submission with `key` made it.

        Raises Conflict if that was another submission, Unavailable while the job is being deleted.
        """
        if key is None:
            return None
        try:
            request = self.exchange.request(name)
            is_deleted = self.exchange.has(name, layout.DELETE)
        except NotFound:
            return None
        if request.key != key:
            return None
        if is_deleted:
            raise Unavailable(f"{name} is just being deleted.", "Submit again in a moment.")
        if not digests.match(request):
            raise Conflict("This idempotency key belongs to another submission.", "Use a new one.")
        return request


def freeze_submission(
    workspace: Workspace, submission: Submission, caller: Caller
) -> tuple[Submission, Frozen]:
    """Freeze notebook and inputs; return the submission with its output resolved, and these.

    Raises what `resolve_output` and `freeze` do.
    """
    if submission.output is not None:
        submission = replace(submission, output=resolve_output(workspace, submission.output))
    frozen = freeze(
        workspace,
        submission.notebook,
        submission.inputs,
        submission.expected_sha256,
        caller.input_cap,
        submission.content,
        caller.max_notebook,
    )
    return submission, frozen


def local_environment(interpreter: str) -> Environment:
    """Return the environment of a runner that `interpreter` runs on this host."""
    return Environment(interpreter, socket.gethostname(), variables_for_runs(os.environ))


def _fields_as_submitted(submission: Submission) -> dict[str, Any]:
    """Return the fields of a request that are the submission's own."""
    return {
        "parameters": submission.parameters,
        "env": submission.env,
        "isolation_asked": submission.isolated,
        "max_runtime_asked": submission.max_runtime,
        "name_asked": submission.name,
        "packages": submission.packages,
        "priority": submission.priority,
        "output": submission.output or submission.results,
        "results": None if submission.output else submission.results,
        "group": submission.group,
        "group_limit": submission.group_limit,
        "rerun_of": submission.rerun_of,
    }
