"""The flavors around the one that a job gets: its receipt compares the usage with them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
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
    others = [
        candidate
        for name, flavor in catalog.flavors.items()
        if name != choice.flavor_name and flavor.permits(groups)
        for candidate in catalog.choices(name)
    ]
    same = [c for c in others if _has_same_accelerators(c, choice)]
    larger = [c for c in same if c.demand["memory"] > required["memory"]]
    smaller = [
        c
        for c in same
        if c.demand != required and all(c.demand[n] <= required[n] for n in ("cpu", "memory"))
    ]
    without_gpu = [c for c in others if choice.accelerators and not c.accelerators]
    alternatives = [
        *_alternatives(without_gpu, required, frees_gpu=True),
        *_alternatives(smaller, required, frees_gpu=False),
    ]
    return AlternativeFlavors(tuple(alternatives[:MAX_SMALLER]), _smallest(larger, admit))


def _has_same_accelerators(candidate: Choice, choice: Choice) -> bool:
    """Tell whether two choices give the same accelerators, or none. Parts are not compared.

    Only choices of one device count: the catalog does not say what two devices have in common.
    """
    is_same_device = candidate.device_name == choice.device_name or not choice.accelerators
    return is_same_device and candidate.accelerators == choice.accelerators


def _alternatives(
    choices: Sequence[Choice], required: Demand, *, frees_gpu: bool
) -> list[Alternative]:
    """Return the flavors of some choices, the smallest first: cores and memory weigh the same."""

    def size(choice: Choice) -> Decimal:
        names = [name for name in ("cpu", "memory") if required[name]]
        return sum((choice.demand[name] / required[name] for name in names), Decimal(0))

    by_flavor: dict[str, Choice] = {}
    for choice in choices:  # a flavor's first device counts
        by_flavor.setdefault(choice.flavor_name, choice)
    return [
        Alternative(
            choice.flavor_name,
            float(choice.demand["cpu"]),
            int(choice.demand["memory"]),
            choice.flavor.max_runtime,
            frees_gpu,
        )
        for choice in sorted(by_flavor.values(), key=size)
    ]


def _smallest(choices: Sequence[Choice], admit: Callable[[Demand], None]) -> str | None:
    """Return the flavor with the least memory that `admit` takes."""
    for choice in sorted(choices, key=lambda c: (c.demand["memory"], c.demand["cpu"])):
        with contextlib.suppress(NeverFits):
            admit(choice.demand)
            return choice.flavor_name
    return None
