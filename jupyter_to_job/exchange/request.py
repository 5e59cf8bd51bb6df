"""request.json: a submission as recorded. A run needs nothing beside it and the snapshot."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, NamedTuple

from job_runner.protocol import times
from job_runner.protocol.fields import FieldError, read_fields

from ..domain.advice import AlternativeFlavors
from ..domain.errors import Damaged
from ..domain.job import Asked
from ..domain.submission_rules import is_plain


@dataclass(frozen=True)
class InputFile:
    """An input of the notebook; `path` is relative to the workspace."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Environment:
    """The submitter's interpreter and the variables that its runner starts with.

    They are valid on `host`: the local backend's dispatcher of that host runs the job.
    """

    interpreter: str = ""
    host: str = ""
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _CatalogEntry:
    """The fields of a flavor or a device that are read again after the submission."""

    env: dict[str, str] = field(default_factory=dict)
    max_runtime: int | None = None


class Demand(NamedTuple):
    """Amounts of resources on a host; many jobs have the same."""

    host: str
    amounts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Request:
    """One submission as recorded. `source` and `workspace` are absolute on the submitter's side.

    `flavor_spec` and `device_spec` are the catalog's entries at submission, so that a later edit
    does not change a queued job; `demand` is what the job occupies, by resource name.
    `memory_limit` is the limit of the kernel's processes in bytes; None: no limit.
    `neighbours` are the next smaller and larger flavors at submission, for advice in the receipt.
    `output_limit` is the bytes of output that the runner keeps; None: all of it.
    `packages` are the submitter's distributions with their import names; None: not known.
    `roots` are the folders outside of the workspace that links in it may lead to.
    `kernel_spec` is the kernel's specification as the submitter's Jupyter resolved it; None: the
    runner resolves `kernel` by its name.
    `isolation_asked`: whether the submitter wanted it isolated; None: an older request.
    `max_runtime_asked` is the submitter's own limit, `name_asked` the name, and `inputs_asked` the
    files, folders and patterns as they were given; None: none, or an older request. A gateway gets
    no patterns.
    `mounts` are the folders that the run sees at the same place where the backend chose them, and
    `left_behind` says of each other one why it does not.
    `key` is the digest of owner, notebook and idempotency key; None: there was no key.
    `request_id` is the id by which log lines about the job are found; None: not known.
    `group` is a label of jobs that belong together. This job starts only while fewer than
    `group_limit` of them run; None: no limit. `rerun_of` is the job that this one runs again.
    `results` is the `output` that the settings chose; None: the submitter did, or nobody.
    """

    name: str
    owner: str
    notebook: str
    source: str
    workspace: str
    flavor: str
    device: str
    flavor_spec: dict[str, Any]
    device_spec: dict[str, Any]
    demand: dict[str, str]
    snapshot_sha256: str
    submitted: str
    backend: str
    digest: str
    neighbours: AlternativeFlavors = field(default_factory=AlternativeFlavors)
    key: str | None = None
    roots: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[InputFile, ...] = ()
    isolated: bool = False
    isolation_asked: bool | None = None
    max_runtime_asked: int | None = None
    name_asked: str | None = None
    inputs_asked: tuple[str, ...] | None = None
    mounts: tuple[str, ...] = ()
    left_behind: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    environment: Environment = Environment()
    kernel: str | None = None
    kernel_spec: dict[str, Any] | None = field(default=None, repr=False)
    max_runtime: int | None = None
    memory_limit: int | None = None
    output_limit: int | None = None
    packages: dict[str, list[str]] | None = None
    priority: int = 0
    output: str | None = None
    request_id: str | None = None
    group: str | None = None
    group_limit: int | None = None
    rerun_of: str | None = None
    results: str | None = None

    @property
    def asked(self) -> Asked:
        """What the submitter chose, as far as an older request tells it."""
        limit = self.max_runtime_asked
        if limit is None and self.max_runtime != self.flavor_spec.get("max_runtime"):
            limit = self.max_runtime  # an older request's, and below that of its flavor
        return Asked(
            max_runtime=limit,
            isolated=self.isolated if self.isolation_asked is None else self.isolation_asked,
            inputs=(
                tuple(file.path for file in self.inputs)
                if self.inputs_asked is None
                else self.inputs_asked
            ),
            name=self.name_asked,
            output=self.output if self.results is None else None,
            group_limit=self.group_limit,
        )

    @cached_property
    def age(self) -> str:
        """The key by which jobs are listed: a greater text is a newer job."""
        return f"{self.submitted} {self.name}"

    @cached_property
    def queue_key(self) -> tuple[int, str]:
        """The key by which jobs wait: higher priority first, then first come, first served."""
        return -self.priority, self.age

    @cached_property
    def demand_on_host(self) -> Demand:
        """What this job waits for, and on which host."""
        return Demand(self.environment.host, tuple(self.demand.items()))

    def to_document(self) -> dict[str, Any]:
        """Return the document to write; it shares its parts with this request."""
        # `asdict` of the request would copy every name of every package.
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "neighbours": asdict(self.neighbours),
            "inputs": [vars(file) for file in self.inputs],
            "environment": vars(self.environment),
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Request:
        """Read the document back. Raises FieldError."""
        request = read_fields(cls, document)
        try:
            times.parse(request.submitted)
        except ValueError as error:
            raise FieldError(f"submitted: {error}") from error
        environment = request.environment
        texts = [request.owner, request.notebook, request.source, request.workspace]
        texts += [request.cwd or "", request.output or "", request.kernel or "", *request.roots]
        texts += [*request.mounts, *request.left_behind, *(request.inputs_asked or ())]
        texts += [request.name_asked or ""]
        texts += [environment.interpreter, environment.host, *(i.path for i in request.inputs)]
        texts += [
            t for e in (request.env, environment.variables) for pair in e.items() for t in pair
        ]
        if not all(map(is_plain, texts)):
            raise FieldError("a path or a variable is no text of an operating system")
        if not (request.source.startswith("/") and request.workspace.startswith("/")):
            raise FieldError("source and workspace are not absolute")
        if request.group_limit is not None and request.group_limit < 1:
            raise FieldError(f"group_limit is {request.group_limit}")
        if not request.owner or not request.notebook or request.notebook.startswith("/"):
            raise FieldError("owner or notebook is not usable")
        for spec in ("flavor_spec", "device_spec"):
            read_fields(_CatalogEntry, getattr(request, spec), f"{spec}.")
        for resource, amount in request.demand.items():
            if not _is_amount(amount):
                raise FieldError(f"demand.{resource} is {amount!r}")
        return request


@dataclass(frozen=True)
class UnreadableRequest(Request):
    """The place of a request that cannot be read: `error` says why.

    Its job is shown as damaged, and can be deleted. Nothing else is known of it.
    """

    error: Damaged = field(kw_only=True)

    @classmethod
    def of(cls, name: str, submitted: str, error: Damaged) -> UnreadableRequest:
        """Return the place of the request of the job `name`, made at the time `submitted`."""
        return cls(
            name=name,
            owner="",
            notebook="",
            source="",
            workspace="",
            flavor="",
            device="",
            flavor_spec={},
            device_spec={},
            demand={},
            snapshot_sha256="",
            submitted=submitted,
            backend="",
            digest="",
            error=error,
        )


def _is_amount(text: str) -> bool:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return False
    return amount.is_finite() and amount >= 0
