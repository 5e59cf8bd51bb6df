"""Taking a submission: check it, resolve it, record it. After this nothing else is consulted."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from job_runner.protocol import layout

from ...backends.port import Backend
from ...domain import times
from ...domain.errors import Conflict, JobsError, NeverFits, NotFound, Refused, Unavailable
from ...domain.job import Submission
from ...domain.names import job_name, key_digest
from ...domain.submission_rules import validate_submission
from ...domain.transfer import Transfer
from ...exchange import FileExchange, Request
from ...exchange.request import Environment, digest_of
from ...workspace import Frozen, freeze_input
from ..catalog import fitting
from .alternatives import alternative_flavors
from .packages import packages_of

if TYPE_CHECKING:
    from ...flavors import Catalog, Choice

_PASSED_ON = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "JUPYTER_PATH",
        "JUPYTER_CONFIG_PATH",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ]
)
_DRAWS = 8
_MAX_DEPTH = 100
_NOT_COMPARED = frozenset(
    ["idempotency_key", "content", "expected_sha256", "input_digests", "packages"]
)
"""What may differ between two submissions that are the same: the snapshot has its own digest."""


@dataclass(frozen=True)
class Caller:
    """Who submits, and how the notebook's side looks from there.

    `workspace` is the absolute root on the caller's side; `environment` what its runner starts
    with; `origin` what a gateway read of the dev pod; `sees_workspace` whether a runner of this
    backend finds the workspace at the same path; `enforce_memory` whether the runner has to hold
    its kernel to the flavor's memory (a container does that by itself); `roots` the folders outside
    that links in the workspace may lead to; `input_cap` how many bytes the inputs may be in all;
    `knows_kernels` whether the environment's kernels are the ones that this process finds.
    """

    owner: str
    workspace: str
    groups: frozenset[str] = frozenset()
    environment: Environment = field(default_factory=Environment)
    origin: dict[str, Any] | None = None
    sees_workspace: bool = True
    enforce_memory: bool = False
    roots: tuple[str, ...] = ()
    input_cap: int | None = None
    knows_kernels: bool = True


@dataclass(frozen=True)
class SubmissionService:
    """Turns submissions into recorded jobs."""

    exchange: FileExchange
    backend: Backend
    catalog: Catalog = field(repr=False)
    output_cap: int | None = None
    """How many bytes of output a job may keep; None: as many as it likes."""

    def accept(
        self, asked: Submission, frozen: Frozen, caller: Caller, transfer: Transfer | None = None
    ) -> tuple[Request, bool]:
        """Record the job and return what was recorded, and whether it is new.

        Raises what `check` and `choose` do, Conflict where the idempotency key belongs to another
        request, and Withdrawn. Whatever is refused leaves nothing behind.
        """
        transfer = transfer or Transfer()
        validate_submission(asked)
        digest = digest_of(_comparable(asked), frozen.sha256)
        key = None
        if asked.idempotency_key is not None:
            key = key_digest(caller.owner, frozen.notebook, asked.idempotency_key)
        for draw in range(_DRAWS):
            # A retry meets its job even if that could not be submitted any more.
            claimed = None if key is None else self.exchange.claimed_name(f"{key}-{draw + 1}")
            known = self._known(claimed, key, digest) if claimed is not None else None
            if known is not None:
                return known, False
            choice = self.choose(asked, frozen.kernel if caller.knows_kernels else None, caller)
            name = self._name(asked, frozen, caller, key, draw)
            known = self._known(name, key, digest)
            if known is not None:
                return known, False
            request = replace(
                _request(asked, frozen, caller, choice),
                name=name,
                backend=self.backend.name,
                digest=digest,
                key=key,
                output_limit=self.output_cap,
                neighbours=alternative_flavors(self.catalog, choice, caller.groups, self._admit),
            )
            # The first name of a key follows from it: whoever comes next claims the same one.
            claim = f"{key}-1" if key is not None and draw == 0 else None
            created = self._create(request, frozen, caller, transfer, claim)
            if created is not None:
                return created, True
            known = self._known(name, key, digest)
            if known is not None:  # somebody with the same key was faster
                return known, False
        raise Conflict("No free job name was found.", "Submit again.")

    def _create(
        self,
        request: Request,
        frozen: Frozen,
        caller: Caller,
        transfer: Transfer,
        claim: str | None,
    ) -> Request | None:
        """Record a job with its inputs. None if the name is taken already.

        `claim` is taken back where that fails.
        """
        transfer.expect(sum(item.size for item in frozen.inputs))
        inputs = {i.path: partial(freeze_input, i, step=transfer.step) for i in frozen.inputs}
        try:
            return self.exchange.create(
                request, frozen.data, inputs, caller.origin, transfer.confirm
            )
        except JobsError:
            if claim is not None:
                self.exchange.release_claim(claim)
            raise

    def choose(self, asked: Submission, kernel: str | None, caller: Caller) -> Choice:
        """Return the flavor and device that a submission gets here.

        Raises UnknownChoice, Refused, or NeverFits, which says what would fit.
        """
        choice = self.catalog.choose(asked.flavor, asked.device, caller.groups)
        if asked.priority and not self.backend.has_queue:
            raise Refused("This backend has no line to go first in.", "Leave the priority out.")
        try:
            self.backend.admit(choice.demand, kernel)
        except NeverFits as error:
            # Other settings may be in force here than where `resources` are known from.
            there = fitting(self.catalog, self.backend.resources(), caller.groups)
            names = [] if choice.flavor_name in there else there
            hint = f"What fits here: {', '.join(names)}." if names else error.hint
            raise NeverFits(error.message, hint) from error
        return choice

    def _admit(self, demand: Mapping[str, Decimal]) -> None:
        self.backend.admit(demand, None)

    def _name(
        self, asked: Submission, frozen: Frozen, caller: Caller, key: str | None, draw: int
    ) -> str:
        """Return a name to try: for a key always the same one in the same draw, in any process."""
        chosen = asked.idempotency_key if draw == 0 else None
        name = job_name(frozen.notebook, owner=caller.owner, key=chosen, label=asked.name)
        return name if key is None else self.exchange.claim(f"{key}-{draw + 1}", name)

    def _known(self, name: str, key: str | None, digest: str) -> Request | None:
        """Return the job of this name if it is the key's, from an earlier submission.

        Raises Conflict if that was another one, Unavailable while the job is being deleted.
        """
        if key is None:
            return None
        try:
            known = self.exchange.request(name)
            deleted = self.exchange.document(name, layout.DELETE) is not None
        except NotFound:
            return None
        if known.key != key:
            return None
        if deleted:
            raise Unavailable(f"{name} is just being deleted.", "Submit again in a moment.")
        if known.digest != digest:
            raise Conflict("This idempotency key belongs to another submission.", "Use a new one.")
        return known


def local_environment(interpreter: str) -> Environment:
    """Return what a runner of this process's own environment starts with."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith(("LC_", "CONDA_"))
    }
    return Environment(interpreter, socket.gethostname(), variables)


def _request(asked: Submission, frozen: Frozen, caller: Caller, choice: Choice) -> Request:
    """Fill in request.json, but for what the intake itself decides."""
    source = Path(caller.workspace, frozen.notebook)
    isolated = asked.isolated or not caller.sees_workspace
    limits = [s for s in (asked.max_runtime, choice.flavor.max_runtime) if s is not None]
    return Request(
        name="",
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
        snapshot_sha256=frozen.sha256,
        submitted=times.now(),
        backend="",
        digest="",
        parameters=asked.parameters,
        isolated=isolated,
        cwd=None if isolated else str(source.parent),
        env=asked.env,
        environment=caller.environment,
        kernel=frozen.kernel,
        max_runtime=min(limits, default=None),
        packages=_packages(asked, frozen, caller),
        memory_limit=int(choice.demand["memory"]) if caller.enforce_memory else None,
        priority=asked.priority,
        output=asked.output,
    )


def _packages(asked: Submission, frozen: Frozen, caller: Caller) -> dict[str, list[str]] | None:
    """Return the packages of the submitter's environment: as they were sent, or if it is ours."""
    if asked.packages is not None:
        return asked.packages
    is_ours = caller.environment.interpreter == sys.executable
    return packages_of(frozen.kernel) if is_ours else None


def _comparable(asked: Submission) -> dict[str, Any]:
    names = (field.name for field in fields(asked) if field.name not in _NOT_COMPARED)
    return {name: getattr(asked, name) for name in names}
