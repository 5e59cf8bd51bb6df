"""Strict schemas of the documents that agents and dev pods send."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from job_runner.protocol import times
from job_runner.protocol.created import CreatedFiles
from job_runner.protocol.fields import read_fields
from job_runner.protocol.figures import figures_of_run
from job_runner.protocol.outcome import MAX_ARTIFACTS, Outcome

from ...api.bodies import checked
from ...domain.errors import BadInput
from ...exchange.records import HeldRecord

MAX_MESSAGE = 16 << 10
"""Characters of the message of a delivery."""
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
_SHA256 = r"^[0-9a-f]{64}$"


class _Document(BaseModel):
    """Unknown fields are allowed: a newer minor version may send them."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Claim(_Document):
    pod: str


class _Published(_Document):
    path: str = Field(min_length=1)
    sha256: str = Field(pattern=_SHA256)


class _Delivery(_Published):
    time: str = Field(pattern=_TIME)
    artifacts: list[str] = Field(default=[], max_length=MAX_ARTIFACTS)
    message: str | None = Field(default=None, max_length=MAX_MESSAGE)


class _Held(_Document):
    message: str = Field(min_length=1, max_length=MAX_MESSAGE)
    failed: bool = False


class _Cells(_Document):
    done: int = Field(ge=0)
    total: int = Field(ge=0)


def _known_figures(usage: object) -> object:
    return figures_of_run(usage) if isinstance(usage, dict) else usage


class _Outcome(_Document):
    state: Literal["succeeded", "failed"]
    reason: str | None
    message: str | None
    exit_code: int | None
    cells: _Cells
    started: str | None = Field(pattern=_TIME)
    finished: str = Field(pattern=_TIME)
    usage: Annotated[dict[str, float | None], BeforeValidator(_known_figures)]
    result_sha256: str | None = Field(pattern=_SHA256)


def claiming_pod(document: dict[str, object]) -> str:
    """Return the uid of the pod that claims an attempt. Raises BadInput."""
    return checked(_Claim, document).pod


def check_delivery(document: dict[str, object]) -> None:
    """Raise BadInput unless it is a delivery.json."""
    delivery = checked(_Delivery, document)
    try:
        times.parse(delivery.time)
    except ValueError as error:
        raise BadInput(f"The time of the delivery is none: {error}.") from error


def check_published(document: dict[str, object]) -> None:
    """Raise BadInput unless it is a published.json."""
    checked(_Published, document)


def held_record(document: dict[str, object]) -> HeldRecord:
    """Return what counts of a held.json. Raises BadInput."""
    record = checked(_Held, document)
    return HeldRecord(record.message, record.failed)


def check_created(document: dict[str, object]) -> None:
    """Raise BadInput unless it is a created.json."""
    try:
        read_fields(CreatedFiles, document)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"The list of created files is none: {error}.") from error


def check_outcome(document: dict[str, object]) -> None:
    """Raise BadInput unless it is an outcome.json."""
    checked(_Outcome, document)
    try:
        Outcome.from_document(document)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"The outcome is none: {error}.") from error
