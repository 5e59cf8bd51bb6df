"""The Job as every reader sees it: CLI `--json`, REST, events. Field names are a fixed contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from job_runner.protocol.metrics import Metric
from job_runner.protocol.progress import Progress

from .known_fields import known_fields
from .notification import HookNotification
from .wait import JobWait


class State(str, Enum):
    """Where a job is. The last three are final."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether a job in this state has ended for good."""
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class DeliveryState(str, Enum):
    """The state of the result's publication. `pending` and `held` may still change."""

    PENDING = "pending"
    DELIVERED = "delivered"
    HELD = "held"
    FAILED = "failed"
    NONE = "none"


@dataclass(frozen=True)
class Delivery:
    """Publication of the result; `path` is relative to the reader's workspace."""

    state: DeliveryState = DeliveryState.PENDING
    path: str | None = None
    message: str | None = None

    @property
    def decided(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state is not DeliveryState.PENDING


@dataclass(frozen=True)
class Submission:
    """A user's request, before it is checked. None: the catalog or a default decides.

    `content` is the notebook as it is open in an editor: it is frozen instead of the file.
    `input_digests` has the sha256 of each input by path, for inputs that a gateway got as blobs.
    `packages` are those of the kernel's environment, for a run elsewhere. `group` is a label of
    jobs that belong together; at most `group_limit` of them run at once when this job starts.
    `rerun_of` is the job that this one runs again. `results` is the folder where the result goes by
    the settings if no `output` was asked for: of a browser as they have it. `plan` is what
    preflight said of the job, as its answer has it: where the job would run otherwise, it is
    refused.
    """

    notebook: str
    flavor: str | None = None
    device: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    input_digests: dict[str, str] = field(default_factory=dict)
    packages: dict[str, list[str]] | None = None
    isolated: bool = False
    env: dict[str, str] = field(default_factory=dict)
    max_runtime: int | None = None
    output: str | None = None
    name: str | None = None
    priority: int = 0
    group: str | None = None
    group_limit: int | None = None
    rerun_of: str | None = None
    results: str | None = None
    content: bytes | None = None
    expected_sha256: str | None = None
    plan: dict[str, str] | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True)
class Changes:
    """The fields in which a rerun differs from its job; None: as they were.

    `parameters` and `env` are merged into the job's. `unset` names what is not taken over:
    `max_runtime`, `output`, `name`, or one of them as in `parameters.rate`. Another flavor without
    a device takes the catalog's device. The old flavor's time limit is never taken over. `results`
    and `plan` are as in a submission.
    """

    flavor: str | None = None
    device: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    max_runtime: int | None = None
    output: str | None = None
    name: str | None = None
    priority: int | None = None
    unset: tuple[str, ...] = ()
    results: str | None = None
    plan: dict[str, str] | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True)
class Asked:
    """What the submitter chose, where the job's own field depends on something else, too.

    The flavor limits `max_runtime`, and a backend may isolate a run by itself. `inputs` are files,
    folders and patterns as they were given. `name` is the first part of the job's name; None: it
    is the notebook's. `output` is the place of the result; None: the settings say it. The job
    starts only while fewer than `group_limit` jobs of its group run; None: no limit.
    """

    max_runtime: int | None = None
    isolated: bool = False
    inputs: tuple[str, ...] = ()
    name: str | None = None
    output: str | None = None
    group_limit: int | None = None


@dataclass(frozen=True)
class Deleted:
    """The event that a job was deleted: no reader sees it any more."""

    name: str


@dataclass(frozen=True)
class ClusterEvent:
    """What the cluster recorded of a job's Kubernetes Job or pod; `time` is when it last was so."""

    time: str
    reason: str
    message: str


@dataclass(frozen=True)
class Job:
    """One submission and how it stands. Times are RFC 3339 in UTC; durations are seconds.

    `mounts` are the folders that the run sees at the same place where the backend chose them, and
    `left_behind` says of each other one why it does not. `events` are the cluster's latest, the
    oldest first; None where they were not asked for, or nobody can tell them now. `asked` is None
    where it is not known. `metrics` are what the run recorded, by name; None while it has not
    ended. `notifications` are what hooks were told, where that was asked for. `wait` is what a
    waiting job waits for, where somebody looks at it: a feed of changes does not say it.
    """

    name: str
    owner: str
    notebook: str
    flavor: str
    device: str
    parameters: dict[str, Any]
    inputs: tuple[str, ...]
    isolated: bool
    output: str | None
    max_runtime: int | None
    priority: int
    backend: str
    state: State
    cancel_requested: bool = False
    reason: str | None = None
    message: str | None = None
    position: int | None = None
    progress: Progress = field(default_factory=Progress)
    delivery: Delivery = Delivery()
    usage: dict[str, Any] | None = None
    submitted: str | None = None
    started: str | None = None
    finished: str | None = None
    journal: int = 0
    mounts: tuple[str, ...] = ()
    left_behind: tuple[str, ...] = ()
    events: tuple[ClusterEvent, ...] | None = None
    asked: Asked | None = None
    group: str | None = None
    rerun_of: str | None = None
    metrics: dict[str, Metric] | None = None
    notifications: tuple[HookNotification, ...] = ()
    wait: JobWait | None = None

    @property
    def decided(self) -> bool:
        """Whether the job has ended and its delivery is settled: when a `--wait` returns."""
        return self.state.final and self.delivery.decided

    def with_paths(self, convert: Callable[[str], str]) -> Job:
        """Return the job with the paths of its files in the workspace converted."""
        delivery = self.delivery
        if delivery.path is not None:
            delivery = replace(delivery, path=convert(delivery.path))
        asked = self.asked
        if asked is not None:
            output = None if asked.output is None else convert(asked.output)
            asked = replace(asked, inputs=tuple(map(convert, asked.inputs)), output=output)
        return replace(
            self,
            notebook=convert(self.notebook),
            inputs=tuple(map(convert, self.inputs)),
            output=None if self.output is None else convert(self.output),
            delivery=delivery,
            asked=asked,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the job as plain JSON types."""
        # `asdict` would copy every nested value, which is most of the time of a page of jobs.
        document = {**vars(self), "state": self.state.value, "inputs": list(self.inputs)}
        document["mounts"] = list(self.mounts)
        document["left_behind"] = list(self.left_behind)
        if self.events is not None:
            document["events"] = [dict(vars(event)) for event in self.events]
        document["notifications"] = [dict(vars(n)) for n in self.notifications]
        document["progress"] = dict(vars(self.progress))
        if self.asked is not None:
            document["asked"] = {**vars(self.asked), "inputs": list(self.asked.inputs)}
        if self.metrics is not None:
            document["metrics"] = {name: vars(metric) for name, metric in self.metrics.items()}
        if self.wait is not None:
            document["wait"] = self.wait.to_json()
        document["delivery"] = {**vars(self.delivery), "state": self.delivery.state.value}
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Job:
        """Read a job that crossed REST; fields of a newer version are ignored."""
        values = known_fields(cls, document)
        events = values.get("events")
        delivery = dict(values.get("delivery") or {"state": "none"})
        delivery["state"] = DeliveryState(delivery["state"])
        asked = values.get("asked")
        metrics = values.get("metrics")
        notifications = values.get("notifications") or ()
        wait = values.get("wait")
        values.update(
            state=State(values["state"]),
            inputs=tuple(values.get("inputs") or ()),
            mounts=tuple(values.get("mounts") or ()),
            left_behind=tuple(values.get("left_behind") or ()),
            events=None
            if events is None
            else tuple(ClusterEvent(**known_fields(ClusterEvent, event)) for event in events),
            notifications=tuple(
                HookNotification(**known_fields(HookNotification, n)) for n in notifications
            ),
            progress=Progress(**known_fields(Progress, values.get("progress") or {})),
            wait=None if wait is None else JobWait.from_json(wait),
            delivery=Delivery(**known_fields(Delivery, delivery)),
            asked=asked
            and Asked(**{**known_fields(Asked, asked), "inputs": tuple(asked.get("inputs", ()))}),
            metrics=metrics
            and {name: Metric(**known_fields(Metric, metric)) for name, metric in metrics.items()},
        )
        return cls(**values)
