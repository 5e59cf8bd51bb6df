"""Durations as people type them, quantities as Kubernetes writes them, moments as documents do."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_runner.protocol import times
from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.domain.quantities import parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("45m", 2700), ("1h30m", 5400), ("1d", 86400), ("1d1h1m1s", 90061), ("7", 7),
     (3600, 3600), (" 2h ", 7200)],
)  # fmt: skip
def test_duration(text: str | int, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0s",
        "-5",
        "1.5h",
        "h",
        "30m1h",
        "1h 30m",
        "1w",
        "soon",
        "٣s",
        "²",
        True,
        None,
        "9" * 5000,
    ],
)
def test_no_duration(text: object) -> None:
    with pytest.raises(BadInput):
        parse_duration(text)  # type: ignore[arg-type]


@given(st.integers(1, 10**9 - 1))
def test_every_duration_in_its_parts(seconds: int) -> None:
    minutes, secs = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    assert parse_duration(f"{days}d{hours}h{minutes}m{secs}s") == seconds == parse_duration(seconds)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500m", "0.5"), ("2Gi", 2 << 30), ("1.5", "1.5"), (1, 1), (0.5, "0.5"), ("16G", 16 * 10**9),
     ("1k", 1000), ("1Ki", 1024), ("0.5Mi", 1 << 19), ("3Ti", 3 << 40), ("0", 0)],
)  # fmt: skip
def test_quantity(text: str | float, amount: str | int) -> None:
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text", ["", "-1", "1e3", "2 Gi", "Gi", "1gi", "NaN", "inf", "1\nGi", "\u0661"]
)
def test_no_quantity(text: str) -> None:
    with pytest.raises(BadInput):
        parse_quantity(text)


def test_moments_are_utc_and_sort_as_text() -> None:
    moment = datetime(2026, 11, 21, 10, 30, tzinfo=timezone(timedelta(hours=1)))
    assert times.rfc3339(moment) == "2026-11-21T09:30:00.000Z"
    assert times.rfc3339(moment) < times.rfc3339(moment + timedelta(milliseconds=1))
    assert len(times.now()) == 24
