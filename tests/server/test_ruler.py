"""What measures the event loop sees one that is blocked, and takes off what others did."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from .ruler import Ruler, Samples, kept_waiting
from .ruler import ruler as ruler


async def test_a_loop_that_sleeps(ruler: Ruler) -> None:
    async def sleeps() -> None:
        await asyncio.sleep(0.1)
        time.sleep(0.3)

    assert await ruler.longest(sleeps()) > 0.1


async def test_a_loop_that_waits_for_pythons_lock(ruler: Ruler) -> None:
    numbers = json.dumps([1.5] * 5_000_000)
    assert await ruler.longest(asyncio.to_thread(json.loads, numbers)) > 0.1


@pytest.mark.parametrize(
    ("samples", "taken_off"),
    [
        ([(0.9, 5.0), (1.2, 5.0)], 0.0),
        ([(0.9, 5.0), (1.2, 5.08)], 0.08),  # whoever looks stood still, too
        ([(0.8, 4.0), (0.99, 5.0), (1.05, 5.04), (1.11, 5.08), (1.2, 9.0)], 0.08),
        ([(1.0, 5.0), (1.1, 5.08), (1.2, 9.0)], 0.08),
        ([(1.05, 5.04), (1.1, 5.08)], 0.04),  # it had only just begun
    ],
)
def test_what_the_machine_gave_to_others(samples: Samples, taken_off: float) -> None:
    assert kept_waiting(samples, 1.0, 1.1) == pytest.approx(taken_off)
