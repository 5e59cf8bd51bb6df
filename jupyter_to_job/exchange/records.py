"""The small documents of a job beside request.json and outcome.json, field by field."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wish:
    """cancel.json and delete.json: when somebody asked for it."""

    time: str


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
    """held.json: why publishing has to wait; path and digest where only artifacts are held."""

    message: str
    path: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class ClearedRecord:
    """cleared.json: when the large pieces of a job were removed, and why."""

    time: str
    message: str
