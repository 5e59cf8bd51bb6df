"""The models of request bodies: strict types, no unknown fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..domain.errors import BadInput
from ..domain.job import Changes, Submission
from ..domain.names import JOB_NAME, MAX_LENGTH
from ..domain.quantities import parse_duration
from ..domain.submission_rules import check_key
from ..domain.sweep import Run, group_name
from .large_body import dump

_UNSET = r"^(max_runtime|output|name|(parameters|env)\..+)$"
MAX_RUNS = 500
"""Runs of one request."""
_Body = TypeVar("_Body", bound=BaseModel)


class SentInput(BaseModel):
    """An input that was sent to a gateway as a blob."""

    model_config = ConfigDict(extra="forbid", strict=True)
    path: str = Field(min_length=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class _Choices(BaseModel):
    """The choices of a submission and of a rerun."""

    model_config = ConfigDict(extra="forbid", strict=True)

    flavor: str | None = None
    device: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    max_runtime: Annotated[int | str, AfterValidator(parse_duration)] | None = None
    output: str | None = None
    name: str | None = None
    priority: int | None = Field(default=None, ge=-100, le=100)
    results: str | None = None
    plan: dict[str, str] | None = None


class RerunBody(_Choices):
    """The body of `POST jobs/{name}/rerun`: the fields that differ from the job's own."""

    unset: list[Annotated[str, Field(pattern=_UNSET)]] = Field(default_factory=list)


class SubmitBody(_Choices):
    """The body of `POST jobs`."""

    notebook: str = Field(min_length=1)
    content: dict[str, Any] | None = None
    expected_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    inputs: list[str] | list[SentInput] = Field(default_factory=list)
    isolated: bool = False
    priority: int = Field(default=0, ge=-100, le=100)
    packages: dict[str, list[str]] | None = None
    group: str | None = None
    group_limit: int | None = Field(default=None, ge=1)
    rerun_of: str | None = Field(default=None, max_length=MAX_LENGTH, pattern=f"^{JOB_NAME}$")


class RunBody(BaseModel):
    """One run of a sweep: the fields in which it differs from the others."""

    model_config = ConfigDict(extra="forbid", strict=True)

    parameters: dict[str, Any] = Field(default_factory=dict)
    flavor: str | None = None
    device: str | None = None


class RunsBody(BaseModel):
    """The part of the body of `POST sweeps` that a submission has not."""

    runs: list[RunBody] = Field(min_length=1, max_length=MAX_RUNS)


def changes(document: dict[str, Any], key: str | None) -> Changes:
    """Return the checked changes of a rerun. Raises BadInput, naming the field."""
    fields = checked(RerunBody, document).model_dump()
    return Changes(**{**fields, "unset": tuple(fields["unset"])}, idempotency_key=key)


def submission(
    document: dict[str, Any], key: str | None, content: bytes | None = None
) -> Submission:
    """Return the checked submission. Raises BadInput, naming the field.

    `content` is the open document where the body was too large to have it in `document`.
    """
    body = checked(SubmitBody, document)
    if body.content is not None:
        try:
            content = dump(body.content)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"content: {error}.") from error
    if content is not None and body.expected_sha256 is not None:
        raise BadInput("content is not what is on disk: it has no expected_sha256.", "Send one.")
    return Submission(
        **body.model_dump(exclude={"inputs", "content"}),
        content=content,
        inputs=tuple(i if isinstance(i, str) else i.path for i in body.inputs),
        input_digests={i.path: i.sha256 for i in body.inputs if isinstance(i, SentInput)},
        idempotency_key=key,
    )


def sweep(
    document: dict[str, Any], key: str | None, content: bytes | None = None
) -> tuple[Submission, list[Run]]:
    """Return the checked submission of a sweep, with its group, and the runs to make of it."""
    runs = checked(RunsBody, {"runs": document.pop("runs", None)}).runs
    common = submission(document, key, content)
    if common.group is None:
        common = replace(common, group=group_name(common.notebook, key))
    return common, [Run(**run.model_dump()) for run in runs]


def idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the client's key, if it sent one. Raises BadInput."""
    key = headers.get("Idempotency-Key")
    if key is not None:
        check_key(key)
    return key


def checked(kind: type[_Body], document: Mapping[str, object]) -> _Body:
    """Return a document as a model of this kind. Raises BadInput, naming the field."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(str(part) for part in fault["loc"])
        raise BadInput(f"{field}: {fault['msg']}.") from error
