"""The slots of this machine: how much of each resource may be in use at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal

import psutil

from ...domain.errors import BadInput, NeverFits
from ...domain.quantities import parse_quantity

Amounts = Mapping[str, Decimal]
"""Resource name to amount: `cpu` in cores, `memory` in bytes, accelerators in units."""


def capacity(setting: str = "") -> dict[str, Decimal]:
    """Return the machine's capacity, with what `setting` says in its place.

    `setting` reads `cpu=2,memory=4Gi,nvidia.com/gpu=2`. Raises BadInput.
    """
    amounts = {
        "cpu": Decimal(len(os.sched_getaffinity(0))),
        "memory": Decimal(psutil.virtual_memory().total),
    }
    for part in filter(None, (p.strip() for p in setting.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"{part!r} is no capacity.", "Write it as cpu=2,memory=4Gi.")
        amounts[name.strip()] = parse_quantity(value)
    return amounts


def admit(demand: Amounts, total: Amounts) -> None:
    """Raise NeverFits if `demand` is more than there is in all, saying what there is."""
    for name, amount in demand.items():
        have = total.get(name, Decimal(0))
        if amount > have:
            raise NeverFits(
                f"This needs {_human(name, amount)}, and this machine has {_human(name, have)}.",
                "Choose a smaller flavor or another device.",
            )


def fits(demand: Amounts, used: Amounts, total: Amounts) -> bool:
    """Tell whether `demand` fits into what `used` leaves of `total`."""
    return all(
        used.get(name, Decimal(0)) + amount <= total.get(name, Decimal(0))
        for name, amount in demand.items()
    )


def _human(name: str, amount: Decimal) -> str:
    if name == "memory":
        return f"{amount / 2**30:.1f} GiB of memory"
    return f"{amount.normalize():f} {name}"
