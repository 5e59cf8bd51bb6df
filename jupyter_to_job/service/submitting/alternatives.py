"""The flavors around the one that a job gets: its receipt compares the usage with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from ...domain.advice import Alternative, AlternativeFlavors
from ...domain.errors import NeverFits

if TYPE_CHECKING:
    from ...flavors.catalog import Catalog, Choice

Demand = Mapping[str, Decimal]
MAX_SMALLER = 20
"""Smaller flavors to record: a catalog may have thousands, and every request records them."""


def alternative_flavors(
    catalog: Catalog, choice: Choice, groups: frozenset[str], admit: Callable[[Demand], None]
) -> AlternativeFlavors:
    """Return the flavors around `choice` that a member of `groups` may use.

    A smaller flavor has no more of anything and less of something, or lacks the accelerator that
    `choice` has. The larger flavor is one for which `admit` does not raise NeverFits.
    """
    required = choice.demand
    smaller: dict[tuple[str, bool], Choice] = {}
    larger: list[Choice] = []
    for candidate in _permitted(catalog, choice, groups):
        demand = candidate.demand
        is_same, frees_gpu = _is_same(candidate, choice), _frees_gpu(candidate, choice)
        if is_same and demand["memory"] > required["memory"]:
            larger.append(candidate)
        if frees_gpu or (
            is_same
            and demand != required
            and demand["cpu"] <= required["cpu"]
            and demand["memory"] <= required["memory"]
        ):
            smaller.setdefault((candidate.flavor_name, frees_gpu), candidate)
    ordered = sorted(
        smaller.values(), key=lambda c: (not _frees_gpu(c, choice), _size(c, required))
    )
    return AlternativeFlavors(
        tuple(_alternative(candidate, choice) for candidate in ordered[:MAX_SMALLER]),
        _next(larger, admit),
    )


def _permitted(catalog: Catalog, choice: Choice, groups: frozenset[str]) -> Iterator[Choice]:
    """Yield every other flavor with the devices that it offers."""
    from ...flavors.catalog import permits

    for name, flavor in catalog.flavors.items():
        if name != choice.flavor_name and permits(flavor, groups):
            yield from catalog.choices(name)


def _is_same(candidate: Choice, choice: Choice) -> bool:
    """Tell whether two choices give the same accelerators, or none. Parts are not compared.

    Only choices of one device count: the catalog does not say what two devices have in common.
    """
    if not choice.accelerators:
        return not candidate.accelerators
    return (
        candidate.device_name == choice.device_name
        and candidate.accelerators == choice.accelerators
    )


def _frees_gpu(candidate: Choice, choice: Choice) -> bool:
    return bool(choice.accelerators) and not candidate.accelerators


def _size(choice: Choice, required: Demand) -> Decimal:
    """Return the size relative to `required`: cores and memory weigh the same."""
    return sum(
        (choice.demand[name] / required[name] for name in ("cpu", "memory") if required[name]),
        Decimal(0),
    )


def _alternative(candidate: Choice, choice: Choice) -> Alternative:
    demand = candidate.demand
    return Alternative(
        candidate.flavor_name,
        float(demand["cpu"]),
        int(demand["memory"]),
        candidate.flavor.max_runtime,
        _frees_gpu(candidate, choice),
    )


def _next(larger: list[Choice], admit: Callable[[Demand], None]) -> str | None:
    for candidate in sorted(larger, key=lambda c: (c.demand["memory"], c.demand["cpu"])):
        try:
            admit(candidate.demand)
        except NeverFits:
            continue
        return candidate.flavor_name
    return None
