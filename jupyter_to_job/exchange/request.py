"""request.json: a submission as recorded. A run needs nothing beside it and the snapshot."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..domain.advice import AlternativeFlavors
from ..domain.errors import Damaged


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
    `key` is the digest of owner, notebook and idempotency key; None: there was no key.
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

    def to_document(self) -> dict[str, Any]:
        """Return the document to write; it shares its parts with this request."""
        # `asdict` of the request would copy every name of every package.
        return {
            **vars(self),
            "neighbours": asdict(self.neighbours),
            "inputs": [vars(file) for file in self.inputs],
            "environment": vars(self.environment),
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Request:
        """Read the document back; fields of a newer minor version are ignored."""
        values = {k: v for k, v in document.items() if k in cls.__dataclass_fields__}
        try:
            values["inputs"] = tuple(InputFile(**i) for i in values.get("inputs", ()))
            values["roots"] = tuple(values.get("roots", ()))
            values["neighbours"] = AlternativeFlavors.from_json(values.get("neighbours", {}))
            values["environment"] = Environment(**values.get("environment", {}))
            return cls(**values)
        except TypeError as error:
            raise Damaged(f"A request.json cannot be read: {error}.") from error


def digest_of(submission: dict[str, Any], snapshot_sha256: str) -> str:
    """Return the digest that a repeated submission has in common with the first."""
    canonical = json.dumps([submission, snapshot_sha256], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
