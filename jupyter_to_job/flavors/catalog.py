"""Loads the catalog, bounded, and answers which flavor and device a submission gets."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ..domain.errors import BadCatalog, Refused, UnknownChoice
from .models import Default, Device, Flavor, demand

SHIPPED = Path(__file__).with_name("flavors.yaml")
MAX_BYTES = 1 << 20
MAX_DEPTH = 32
_OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)


@dataclass(frozen=True)
class Choice:
    """A flavor and a device that go together."""

    flavor_name: str
    device_name: str
    flavor: Flavor
    device: Device

    @property
    def demand(self) -> dict[str, Decimal]:
        """What one job of this choice occupies, by resource name."""
        return demand(self.flavor, self.device)


class Catalog(BaseModel):
    """The whole file, checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    apiVersion: Literal["jupyter-to-job.io/v1"]  # noqa: N815 - the file's own spelling
    default: Default
    flavors: dict[str, Flavor]
    devices: dict[str, Device]

    @model_validator(mode="after")
    def _names_exist(self) -> Catalog:
        for name, flavor in self.flavors.items():
            for device in flavor.devices:
                if device not in self.devices:
                    raise ValueError(f"flavor {name!r} names device {device!r}, which is not there")
        if self.default.flavor not in self.flavors:
            raise ValueError(f"the default flavor {self.default.flavor!r} is not there")
        if self.default.device not in self.flavors[self.default.flavor].devices:
            raise ValueError("the default flavor does not offer the default device")
        return self

    def choose(
        self, flavor: str | None, device: str | None, groups: frozenset[str] = frozenset()
    ) -> Choice:
        """Return the checked choice; a missing device becomes the default's or the flavor's first.

        Raises UnknownChoice for names that are not there, Refused where `allowed` says no.
        """
        flavor = flavor or self.default.flavor
        found = self.flavors.get(flavor)
        if found is None:
            raise UnknownChoice(f"There is no flavor {flavor!r}.", _offer(self.flavors))
        if device is None:
            default = self.default.device
            device = default if default in found.devices else found.devices[0]
        if device not in found.devices:
            raise UnknownChoice(
                f"Flavor {flavor!r} has no device {device!r}.", _offer(found.devices)
            )
        if found.allowed.groups and not groups.intersection(found.allowed.groups):
            raise Refused(
                f"Flavor {flavor!r} is for the groups {', '.join(found.allowed.groups)}.",
                "Choose another flavor, or ask your administrator.",
            )
        return Choice(flavor, device, found, self.devices[device])


def _offer(names: object) -> str:
    return f"Choose one of: {', '.join(sorted(names))}."  # type: ignore[call-overload]


def load_catalog(path: Path = SHIPPED) -> Catalog:
    """Read and check the file at `path`. Raises BadCatalog, naming the place of the fault."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadCatalog(f"Cannot read the catalog {path}: {error.strerror}.") from error
    if len(text) > MAX_BYTES:
        raise BadCatalog(f"The catalog {path} is over 1 MiB.")
    try:
        _check_shape(text, path)
        return Catalog.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise BadCatalog(f"The catalog {path} is no YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadCatalog(
            f"The catalog {path} is wrong at {place or 'top'}: {first['msg']}."
        ) from error


def _check_shape(text: bytes, path: Path) -> None:
    """Refuse, before anything is built, what would grow or nest without end."""
    depth = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        place = f"{path}:{token.start_mark.line + 1}"
        if depth > MAX_DEPTH:
            raise BadCatalog(f"{place}: nested deeper than {MAX_DEPTH} levels.")
        if isinstance(token, yaml.AliasToken):
            # An alias can make 430 bytes expand to gigabytes; a catalog has no need of one.
            raise BadCatalog(f"{place}: aliases are not allowed.")
