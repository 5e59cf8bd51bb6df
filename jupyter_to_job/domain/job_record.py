"""What the record of a job says beside the Job: for who looks at one job in detail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class SentFile:
    """A file that was sent along; `path` is relative to the reader's workspace, `size` in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class JobRecord:
    """Where a job ran, which files belong to it, and how long they are kept.

    `env` are the names of the variables that the submitter set, and `variables` the names of those
    that came along from the submitter's environment. Nothing has their values. `files` are the
    paths of the files that the run created and that were copied to the workspace. `result_sha256`
    is the digest of the notebook that was delivered, and `delivered` when that was; None as long as
    it is not. `image` is the image of the submitter's container on a cluster. `retention` is how
    many seconds after its delivery a job is kept, None for ever. `kept_until` is when that is over;
    None as long as it is not delivered. `cleared` is when snapshot, log and result were removed,
    and `cleared_reason` says why.
    """

    snapshot_sha256: str
    kernel: str | None = None
    interpreter: str | None = None
    host: str | None = None
    image: str | None = None
    env: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    inputs: tuple[SentFile, ...] = ()
    files: tuple[str, ...] = ()
    result_sha256: str | None = None
    delivered: str | None = None
    retention: int | None = None
    kept_until: str | None = None
    cleared: str | None = None
    cleared_reason: str | None = None

    def with_paths(self, convert: Callable[[str], str]) -> JobRecord:
        """Return the record with the paths of files in the workspace converted."""
        inputs = tuple(replace(file, path=convert(file.path)) for file in self.inputs)
        return replace(self, inputs=inputs, files=tuple(map(convert, self.files)))

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON types."""
        lists = {name: list(getattr(self, name)) for name in ("env", "variables", "files")}
        return {**vars(self), **lists, "inputs": [dict(vars(file)) for file in self.inputs]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> JobRecord:
        """Read a record that crossed REST; fields of a newer version are ignored."""
        values = {f.name: document[f.name] for f in fields(cls) if f.name in document}
        for name in ("env", "variables", "files"):
            values[name] = tuple(values.get(name) or ())
        inputs = values.get("inputs") or ()
        values["inputs"] = tuple(SentFile(file["path"], file["size"]) for file in inputs)
        return cls(**values)


@dataclass(frozen=True)
class CellReceipt:
    """What a cell of the run used; None where that is not known.

    `cell` is its index in the notebook that was sent, None for the cell with the parameters that
    the run added. `title` is the first line of its code. `state` is `running`, `done` or `failed`.
    `wall` and `cpu` are seconds, `memory_peak` and `gpu_memory_peak` bytes, and `gpu_utilisation`
    is from 0 to 1.
    """

    cell: int | None
    title: str
    state: str
    started: str | None = None
    wall: float | None = None
    cpu: float | None = None
    memory_peak: int | None = None
    gpu_utilisation: float | None = None
    gpu_memory_peak: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as plain JSON types."""
        return asdict(self)
