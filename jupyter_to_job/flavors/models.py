"""What `flavors.yaml` may say, as pydantic models: any other key is an error, `x-*` is free."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ..domain.errors import BadInput
from ..domain.quantities import parse_duration, parse_quantity

_Parsed = TypeVar("_Parsed")


def _quantity(value: Any) -> str:
    _checked(parse_quantity, value)
    return str(value)


def _seconds(value: Any) -> int:
    return _checked(parse_duration, value)


def _checked(parse: Callable[[Any], _Parsed], value: Any) -> _Parsed:
    """Parse as the command line does, with the error that pydantic adds the place to."""
    try:
        return parse(value)
    except BadInput as error:
        raise ValueError(str(error)) from error


Quantity = Annotated[str, BeforeValidator(_quantity)]
"""A Kubernetes quantity, kept as the admin wrote it."""
Seconds = Annotated[int, BeforeValidator(_seconds)]
"""A duration such as `2h`, as seconds."""
Scalar = Annotated[str, BeforeValidator(str)]


class _Entry(BaseModel):
    """What flavors and devices have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = ""
    description: str = ""
    image: str | None = None
    env: dict[str, Scalar] = Field(default_factory=dict)
    labels: dict[str, Scalar] = Field(default_factory=dict)
    annotations: dict[str, Scalar] = Field(default_factory=dict)
    scheduler_name: str | None = None
    priority_class: str | None = None
    ephemeral_storage: Quantity | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_extensions(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {k: v for k, v in data.items() if not str(k).startswith("x-")}
        return data


class Allowed(BaseModel):
    """Who may use a flavor. Empty: everybody."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    groups: tuple[str, ...] = ()


class Flavor(_Entry):
    """An amount of resources. `gpus` counts units of the device's resource."""

    cpu: Quantity = "1"
    memory: Quantity = "1Gi"
    gpus: int = Field(default=0, ge=0)
    shm: Quantity | None = None
    max_runtime: Seconds | None = None
    retries: int = Field(default=0, ge=0, le=10)
    devices: tuple[str, ...] = Field(min_length=1)
    queue: str | None = None
    allowed: Allowed = Allowed()


class Device(_Entry):
    """A kind of accelerator. `limits` is copied to the container verbatim."""

    resource: str | None = None
    limits: dict[str, Scalar] = Field(default_factory=dict)
    node_selector: dict[str, Scalar] = Field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    runtime_class: str | None = None
    isolation: Literal["full", "hardware", "software", "none"] | None = None


class Default(BaseModel):
    """What is taken when a submission names nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    flavor: str
    device: str


def demand(flavor: Flavor, device: Device) -> dict[str, Decimal]:
    """Return what one job occupies: `cpu` in cores, `memory` in bytes, the device's resources."""
    amounts = {"cpu": parse_quantity(flavor.cpu), "memory": parse_quantity(flavor.memory)}
    if device.resource and flavor.gpus:
        amounts[device.resource] = Decimal(flavor.gpus)
    for name, amount in device.limits.items():
        amounts[name] = parse_quantity(amount)
    return amounts
