"""The small documents of a job beside request.json and outcome.json, field by field."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.notification import HookNotification


@dataclass(frozen=True)
class Wish:
    """cancel.json and delete.json: when somebody asked for it."""

    time: str


@dataclass(frozen=True)
class ClusterJob:
    """job.json: the Kubernetes Job that runs it. One of that name with another uid is not ours."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class PodEnd:
    """pod.json of an attempt: the cluster's word on how its pod ended, beside the runner's own.

    `reason` is None where the cluster has none of its own. `retried`: another pod follows, so this
    attempt is not the job's end.
    """

    uid: str
    node: str | None
    reason: str | None
    message: str | None
    time: str
    retried: bool = False


@dataclass(frozen=True)
class StopRecord:
    """stop.json: why the controller ends a job whose run has not begun."""

    reason: str
    message: str
    time: str


@dataclass(frozen=True)
class PublishedRecord:
    """published.json: the notebook is in the workspace, at this path of it and with this digest.

    Its artifacts follow. Whoever publishes them leaves the notebook alone.
    """

    path: str
    sha256: str


@dataclass(frozen=True)
class DeliveryRecord:
    """delivery.json: the published result by workspace path, its digest, and the artifacts.

    `message` says what was left out.
    """

    path: str
    sha256: str
    time: str
    artifacts: tuple[str, ...] = ()
    message: str | None = None


@dataclass(frozen=True)
class HeldRecord:
    """held.json: why the last try to publish failed. `failed`: it will never be possible."""

    message: str
    failed: bool = False


@dataclass(frozen=True)
class ClearedRecord:
    """cleared.json: when the large pieces of a job were removed, and why."""

    time: str
    message: str


@dataclass(frozen=True)
class NotificationsRecord:
    """notifications.json: what hooks were told of the job, and what was given up."""

    notifications: tuple[HookNotification, ...] = ()
