"""request.json: what was asked, complete enough that nothing else is consulted to run it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..domain.advice import AlternativeFlavors
from ..domain.errors import Damaged


@dataclass(frozen=True)
class InputFile:
    """A file that goes with the notebook; `path` is relative to the workspace."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Environment:
    """The submitter's interpreter and the variables that its runner starts with.

    `host` is where they mean something: the local backend's dispatcher of that host runs the job.
    """

    interpreter: str = ""
    host: str = ""
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One submission as recorded. `source` and `workspace` are absolute on the submitter's side.

    `flavor_spec` and `device_spec` are the catalog's entries at submission, so that a later edit
    does not change a queued job; `demand` is what the job occupies, by resource name.
    `memory_limit` is what the runner holds the kernel's processes to, in bytes; None: no limit.
    `neighbours` are the flavors around its own then, by which its receipt is judged.
    `output_limit` is how many bytes of output the runner keeps; None: all of it.
    `packages` are the submitter's distributions with their import names; None: not known.
    `roots` are the folders outside of the workspace that links in it may lead to.
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
    max_runtime: int | None = None
    memory_limit: int | None = None
    output_limit: int | None = None
    packages: dict[str, list[str]] | None = None
    priority: int = 0
    output: str | None = None

    def to_document(self) -> dict[str, Any]:
        """Return the document to write, of parts that are still this request's own."""
        # Not `asdict` of the whole: it copies every name of every package, one by one.
        return {
            **vars(self),
            "neighbours": asdict(self.neighbours),
            "inputs": [vars(one) for one in self.inputs],
            "environment": vars(self.environment),
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Request:
        """Read the document back; fields of a newer minor version are ignored."""
        known = {k: v for k, v in document.items() if k in cls.__dataclass_fields__}
        try:
            known["inputs"] = tuple(InputFile(**i) for i in known.get("inputs", ()))
            known["roots"] = tuple(known.get("roots", ()))
            known["neighbours"] = AlternativeFlavors.from_json(known.get("neighbours", {}))
            known["environment"] = Environment(**known.get("environment", {}))
            return cls(**known)
        except TypeError as error:
            raise Damaged(f"A request.json cannot be read: {error}.") from error


def digest_of(asked: dict[str, Any], snapshot_sha256: str) -> str:
    """Return the digest by which a repeated submission is known to be the same one."""
    canonical = json.dumps([asked, snapshot_sha256], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
