"""A run of a hundred thousand small outputs, looked at every second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from ..runner.conftest import job as job  # a fixture
from ..runner.jobs import Job
from ..runner.test_leaks import MIB, check, many, watched


@pytest.mark.timeout(900)
def test_many_outputs(job: Callable[..., Job], met: Counter[str], in_full: bool) -> None:
    """CI has a share, and another tenth in `tests/runner`."""
    cells, period = (1000, 1.0) if in_full else (200, 0.1)
    samples = watched(job(many(cells, 100)), cells, 100, period=period)
    for what, figures in check(samples, growth=8 * MIB).items():
        met[f"{what} {figures}"] += 1
