"""A run of a hundred thousand small outputs, looked at every second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from ..runner.conftest import job as job  # a fixture
from ..runner.jobs import Job
from ..runner.test_leaks import MIB, check, many, watched


@pytest.mark.timeout(900)
def test_a_hundred_thousand_outputs(
    job: Callable[..., Job], met: Counter[str], in_full: bool
) -> None:
    """CI has a tenth of them in `tests/runner`."""
    if not in_full:
        pytest.skip("only in the soak: takes a minute or two")
    samples = watched(job(many(1000, 100)), 1000, 100, period=1.0)
    for what, figures in check(samples, growth=8 * MIB).items():
        met[f"{what} {figures}"] += 1
