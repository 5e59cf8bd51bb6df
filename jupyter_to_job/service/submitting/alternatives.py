"""The flavors on either side of the one that a job gets: what its receipt will be held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from ...domain.advice import Alternative, AlternativeFlavors
from ...domain.errors import NeverFits

if TYPE_CHECKING:
    from ...flavors import Catalog, Choice

Demand = Mapping[str, Decimal]
_MOST = 20
"""Smaller flavors to keep: a catalog may have thousands, and each request would hold them."""


def alternative_flavors(
    catalog: Catalog, choice: Choice, groups: frozenset[str], admit: Callable[[Demand], None]
) -> AlternativeFlavors:
    """Return the flavors around `choice` that somebody in `groups` may use.

    Smaller: no more of anything, and less of something; or without the accelerator that `choice`
    has. The larger one has to be one that `admit` lets pass: it raises NeverFits for others.
    """
    own = choice.demand
    smaller: dict[tuple[str, bool], Choice] = {}
    larger: list[Choice] = []
    for other in _permitted(catalog, choice, groups):
        demand = other.demand
        is_same, frees_gpu = _is_same(other, choice), _frees_gpu(other, choice)
        if is_same and demand["memory"] > own["memory"]:
            larger.append(other)
        if frees_gpu or (
            is_same
            and demand != own
            and demand["cpu"] <= own["cpu"]
            and demand["memory"] <= own["memory"]
        ):
            smaller.setdefault((other.flavor_name, frees_gpu), other)
    ordered = sorted(smaller.values(), key=lambda c: (not _frees_gpu(c, choice), _size(c, own)))
    return AlternativeFlavors(
        tuple(_alternative(other, choice) for other in ordered[:_MOST]), _next(larger, admit)
    )


def _permitted(catalog: Catalog, choice: Choice, groups: frozenset[str]) -> Iterator[Choice]:
    """Yield every other flavor with the devices that it offers."""
    from ...flavors.catalog import permits

    for name, flavor in catalog.flavors.items():
        if name != choice.flavor_name and permits(flavor, groups):
            yield from catalog.choices(name)


def _is_same(other: Choice, choice: Choice) -> bool:
    """Tell whether two choices give the same accelerators, or none. Parts are not compared.

    Of one device only: what another has in common with it the catalog does not tell.
    """
    if not choice.accelerators:
        return not other.accelerators
    return other.device_name == choice.device_name and other.accelerators == choice.accelerators


def _frees_gpu(other: Choice, choice: Choice) -> bool:
    return bool(choice.accelerators) and not other.accelerators


def _size(choice: Choice, own: Demand) -> Decimal:
    """Return how much a choice is beside another: a core weighs as much as its share of memory."""
    return sum(
        (choice.demand[name] / own[name] for name in ("cpu", "memory") if own[name]), Decimal(0)
    )


def _alternative(other: Choice, choice: Choice) -> Alternative:
    demand = other.demand
    return Alternative(
        other.flavor_name,
        float(demand["cpu"]),
        int(demand["memory"]),
        other.flavor.max_runtime,
        _frees_gpu(other, choice),
    )


def _next(larger: list[Choice], admit: Callable[[Demand], None]) -> str | None:
    for other in sorted(larger, key=lambda c: (c.demand["memory"], c.demand["cpu"])):
        try:
            admit(other.demand)
        except NeverFits:
            continue
        return other.flavor_name
    return None
