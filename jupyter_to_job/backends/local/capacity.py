"""What may be in use at a time: amounts by resource name, from the machine or as configured."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from job_runner.host.cgroups import usable_cpus, usable_memory

from ...domain.errors import BadInput, NeverFits
from ...domain.quantities import format_resource, parse_quantity

Amounts = Mapping[str, Decimal]
"""Resource name to amount: `cpu` in cores, `memory` in bytes, accelerators in units."""


def configured(setting: str) -> dict[str, Decimal]:
    """Read JUPYTER_TO_JOB_CAPACITY: `cpu=2,memory=4Gi,nvidia.com/gpu=2`. Raises BadInput."""
    amounts = {}
    for part in filter(None, (p.strip() for p in setting.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{part!r} is no capacity.", "Write it as cpu=2,memory=4Gi.")
        amounts[name.strip()] = parse_quantity(value)
    return amounts


def capacity(setting: str = "") -> dict[str, Decimal]:
    """Return the machine's CPUs and memory, with what `setting` says in their place.

    Accelerators that nobody configured are `slots.Machine`'s to find. Raises BadInput.
    """
    return {"cpu": usable_cpus(), "memory": Decimal(usable_memory()), **configured(setting)}


def admit(demand: Amounts, total: Amounts) -> None:
    """Raise NeverFits if `demand` is more than there is in all, saying what there is."""
    for name, amount in demand.items():
        have = total.get(name, Decimal(0))
        if amount > have:
            there_is = f"has {format_resource(name, have)}" if have else f"has no {name}"
            raise NeverFits(
                f"This needs {format_resource(name, amount)}, and this machine {there_is}.",
                "Choose a smaller flavor or another device.",
            )
