"""Bytes and durations as people read them: the one place that rounds them, for runner and jobs."""

from __future__ import annotations

_BYTE_UNITS = ("KiB", "MiB", "GiB", "TiB")
_DURATION_STEPS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_MAX_DIGITS = 6


def format_bytes(count: float) -> str:
    """Return a number of bytes as `1 byte`, `512 bytes`, `3.4 MiB` or `16 GiB`."""
    if count < 1024:
        return "1 byte" if count == 1 else f"{count:.0f} bytes"
    unit, size = _byte_unit(count)
    return f"{_rounded(count / size, 1)} {unit}"


def format_bytes_of(used: float, total: float) -> str:
    """Return a share of bytes as `1.2 of 16 GiB`, with as many digits as tell the two apart.

    Both are in the unit of the whole: `0.05 of 2 GiB`, and `<0.01 of 2 GiB` for less than that.
    """
    unit, size = _byte_unit(total)
    used, total = used / size, total / size
    if used < 0.1:
        amount = "<0.01" if 0 < used < 0.01 else _rounded(used, 2)
        return f"{amount} of {_rounded(total, 1)} {unit}"
    precisions = range(1, _MAX_DIGITS + 1)
    digits = next((n for n in precisions if _rounded(used, n) != _rounded(total, n)), 1)
    return f"{_rounded(used, digits)} of {_rounded(total, digits)} {unit}"


def format_duration(seconds: float) -> str:
    """Return seconds as `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min` or `4 d 3 h`."""
    if seconds < 9.95:
        return f"{_rounded(max(seconds, 0.0), 1)} s"
    total = round(seconds)
    for size, unit, part_size, part_unit in _DURATION_STEPS:
        if total >= size:
            part = total % size // part_size
            return f"{total // size} {unit}" + (f" {part} {part_unit}" if part else "")
    return f"{total} s"


def _byte_unit(count: float) -> tuple[str, int]:
    """Return the largest unit of which there is one at least, else KiB; with its size in bytes."""
    power = min(max((int(count).bit_length() - 1) // 10, 1), len(_BYTE_UNITS))
    return _BYTE_UNITS[power - 1], 1 << 10 * power


def _rounded(amount: float, digits: int) -> str:
    """Return a number without zeros at the end of its fraction."""
    return f"{round(amount, digits):f}".rstrip("0").rstrip(".")
