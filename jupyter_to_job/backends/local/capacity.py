"""The capacity: amounts by resource name, of the machine or as configured."""

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
    """Return the machine's CPUs and memory, overridden by `setting`.

    `slots.Machine` adds accelerators that are not configured. Raises BadInput.
    """
    return {"cpu": usable_cpus(), "memory": Decimal(usable_memory()), **configured(setting)}


def admit(demand: Amounts, total: Amounts) -> None:
    """Raise NeverFits, with the total, if `demand` is more than that."""
    for name, amount in demand.items():
        available = total.get(name, Decimal(0))
        if amount > available:
            has = f"has {format_resource(name, available)}" if available else f"has no {name}"
            raise NeverFits(
                f"This needs {format_resource(name, amount)}, and this machine {has}.",
                "Choose a smaller flavor or another device.",
            )
