"""The pydantic models of `flavors.yaml`. Unknown keys are errors, except those with `x-` in front.

`rules` has the conditions between fields; `load_catalog` checks a file by both.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .fields import (
    Amount,
    Count,
    Flag,
    LabelKey,
    Labels,
    Quantity,
    Resource,
    Seconds,
    Text,
    Variable,
    Word,
)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _extensible(schema: dict[str, Any]) -> None:
    schema["patternProperties"] = {"^x-": {}}


class Extensible(_Model):
    """A model that ignores keys with `x-` in front, which are the admin's."""

    model_config = ConfigDict(json_schema_extra=_extensible)

    @model_validator(mode="before")
    @classmethod
    def _drop_extensions(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {k: v for k, v in data.items() if not str(k).startswith("x-")}
        return data


class _Entry(Extensible):
    """The fields that flavors and devices have in common."""

    title: Text = Field(default="", description="How people see it.")
    description: Text = Field(default="", description="One sentence more about it.")
    image: Word | None = Field(
        default=None, description="Container image, instead of the dev pod's."
    )
    env: dict[Variable, Text] = Field(
        default_factory=dict, description="Variables for the notebook's container."
    )
    labels: Labels = Field(default_factory=dict, description="Labels for the job's pod.")
    annotations: dict[LabelKey, Text] = Field(
        default_factory=dict, description="Annotations for the job's pod."
    )
    scheduler_name: Word | None = Field(default=None, description="The pod's scheduler.")
    priority_class: Word | None = Field(default=None, description="The pod's priority class.")
    ephemeral_storage: Amount | None = Field(
        default=None, description="Space on the node's disk, a quantity."
    )


class Allowed(_Model):
    """Who may use a flavor: members of one of these groups. None: everybody."""

    model_config = ConfigDict(json_schema_extra={"required": ["groups"]})

    groups: tuple[Text, ...] = Field(
        default_factory=tuple,
        description="The operating system's groups; on a cluster the annotation's.",
        json_schema_extra={"minItems": 1},
    )


class Flavor(_Entry):
    """An amount of resources. `gpus` counts units of the device's resource."""

    cpu: Amount = Field(default="1", description="Cores, may be a fraction: 0.5 or 500m.")
    memory: Amount = Field(default="1Gi", description="Memory, such as 16Gi.")
    gpus: Count = Field(default=0, description="Units of the device's `resource`.")
    shm: Amount | None = Field(
        default=None, description="Size of /dev/shm, which data loaders use; counts as memory."
    )
    max_runtime: Seconds | None = Field(
        default=None, description="Time limit from the first cell on: 90s, 45m, 1h30m, 1d."
    )
    retries: Count = Field(
        default=0, le=10, description="Starts again after a disruption of the node, not an error."
    )
    devices: tuple[Text, ...] = Field(
        min_length=1, description="Devices to choose from; the first is taken if none is named."
    )
    queue: Word | None = Field(default=None, description="Kueue's local queue.")
    allowed: Allowed = Field(
        default_factory=Allowed, description="Who may use it; default: everybody."
    )

    def permits(self, groups: frozenset[str]) -> bool:
        """Tell whether a member of `groups` may use this flavor."""
        return not self.allowed.groups or bool(groups.intersection(self.allowed.groups))


class Toleration(_Model):
    """A taint that the pod may ignore, spelled as Kubernetes does."""

    key: LabelKey | None = Field(default=None, description="The taint's key; none: every taint.")
    operator: Literal["Exists", "Equal", "Lt", "Gt"] | None = Field(
        default=None, description="Equal by default."
    )
    value: Text | None = Field(default=None, description="The taint's value, for Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="The taint's effect; none: all."
    )
    tolerationSeconds: Count | None = Field(  # noqa: N815 - Kubernetes' own spelling
        default=None, description="How long, with NoExecute."
    )


class Device(_Entry):
    """A kind of accelerator, or none."""

    resource: Resource | None = Field(
        default=None, description="What the flavor's `gpus` counts, as nodes offer it."
    )
    limits: dict[LabelKey, Quantity] = Field(
        default_factory=dict, description="Resources per job, copied to the container verbatim."
    )
    node_selector: Labels = Field(default_factory=dict, description="Labels of nodes to run on.")
    tolerations: tuple[Toleration, ...] = Field(
        default=(), description="Taints of those nodes that jobs may ignore."
    )
    autoscaled: Flag = Field(
        default=False, description="Nodes with it are added when jobs wait: no total is told."
    )
    runtime_class: Word | None = Field(default=None, description="The pod's runtime class.")
    isolation: Literal["full", "hardware", "software", "none"] | None = Field(
        default=None,
        description="What keeps jobs on one GPU apart: full (the GPU is the job's alone), hardware"
        " (MIG), software (limits by a library), none (time-sharing).",
    )


class Default(_Model):
    """What is taken when a submission names nothing."""

    flavor: Text = Field(description="The name of a flavor.")
    device: Text = Field(description="A device of that flavor.")
