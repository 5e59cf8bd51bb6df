"""How bytes and durations are rounded, wherever people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from job_runner.protocol.units import format_bytes, format_bytes_of, format_duration
from jupyter_to_job.domain.quantities import format_resource

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"),
        (1000 << 10, "1000 KiB"), (3.4 * MIB, "3.4 MiB"), (3_565_158, "3.4 MiB"), (GIB, "1 GiB"),
        (1288490188, "1.2 GiB"), (5000 << 30, "4.9 TiB"), (5 << 40, "5 TiB"), (5 << 50, "5120 TiB"),
    ],
)  # fmt: skip
def test_bytes(count: float, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("used", "total", "text"),
    [
        (0, 2 * GIB, "0 of 2 GiB"), (51.3 * MIB, 2 * GIB, "0.05 of 2 GiB"),
        (1.2 * GIB, 16 * GIB, "1.2 of 16 GiB"), (600 * MIB, 512 * MIB, "600 of 512 MiB"),
        (2 * GIB + 16 * MIB, 2 * GIB, "2.02 of 2 GiB"), (2 * GIB + 1, 2 * GIB, "2 of 2 GiB"),
        (1.2345 * GIB, 1.2345 * GIB, "1.2 of 1.2 GiB"),
    ],
)  # fmt: skip
def test_a_share_of_bytes(used: float, total: float, text: str) -> None:
    assert format_bytes_of(used, total) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"), (0.04, "0 s"), (0.35, "0.3 s"), (3, "3 s"), (9.94, "9.9 s"), (9.96, "10 s"),
        (59.4, "59 s"), (59.6, "1 min"), (185, "3 min 5 s"), (3600, "1 h"), (7800, "2 h 10 min"),
        (86_400 * 7, "7 d"), (86_400 * 4 + 3 * 3600, "4 d 3 h"),
    ],
)  # fmt: skip
def test_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("memory", "1610612736", "1.5 GiB of memory"), ("cpu", "1", "1 CPU"),
        ("cpu", "0.5", "0.5 CPUs"), ("nvidia.com/gpu", "2", "2 nvidia.com/gpu"),
        ("ephemeral-storage", "536870912", "512 MiB of ephemeral storage"),
    ],
)  # fmt: skip
def test_resources(name: str, amount: str, text: str) -> None:
    assert format_resource(name, Decimal(amount)) == text
