"""Durations as people type them and quantities as Kubernetes writes them."""

from __future__ import annotations

import re
from decimal import Decimal

from job_runner.protocol.units import format_bytes

from .errors import BadInput

EPHEMERAL_STORAGE = "ephemeral-storage"
"""Kubernetes' name of the resource that `ephemeral_storage` in the catalog asks for."""
# At most 9 digits a number: more are no duration that anybody means, and int() has a limit.
_DURATION = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?|(\d{1,9})", re.ASCII
)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?", re.ASCII)
_UNITS = {
    None: Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000), "M": Decimal(1000) ** 2,
    "G": Decimal(1000) ** 3, "T": Decimal(1000) ** 4, "P": Decimal(1000) ** 5,
    "Ki": Decimal(1024), "Mi": Decimal(1024) ** 2, "Gi": Decimal(1024) ** 3,
    "Ti": Decimal(1024) ** 4, "Pi": Decimal(1024) ** 5,
}  # fmt: skip


def parse_duration(value: str | int) -> int:
    """Return seconds from `90s`, `45m`, `1h30m`, `1d` or plain seconds.

    Raises BadInput for anything else, and for nothing or zero.
    """
    match = _DURATION.fullmatch(str(value).strip())
    days, hours, minutes, units, plain = (
        (int(g or 0) for g in match.groups()) if match else (0,) * 5
    )
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + units + plain
    if seconds <= 0:
        raise BadInput(f"{value!r} is no duration.", "Write it as 90s, 45m, 1h30m, 1d or seconds.")
    return seconds


def parse_quantity(value: str | int | float) -> Decimal:
    """Return a Kubernetes quantity as a number: `500m` is 0.5, `2Gi` is 2147483648.

    Raises BadInput for anything else.
    """
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None:
        raise BadInput(f"{value!r} is no quantity.", "Write it as Kubernetes does: 2, 500m, 16Gi.")
    return Decimal(match[1]) * _UNITS[match[2]]


def format_resource(name: str, amount: Decimal) -> str:
    """Return an amount of a resource: `1.5 GiB of memory`, `2 CPUs`, `2 nvidia.com/gpu`."""
    if name in ("memory", EPHEMERAL_STORAGE):
        return f"{format_bytes(float(amount))} of {name.replace('-', ' ')}"
    if name == "cpu":
        name = "CPU" if amount == 1 else "CPUs"
    return f"{amount.normalize():f} {name}"
