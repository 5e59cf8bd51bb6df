"""Which flavor would have been enough: by tables, and by what must hold for any run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_runner.protocol.fields import read_fields
from jupyter_to_job.domain.advice import (
    MAX_SLOWDOWN,
    MIN_WALL,
    Alternative,
    AlternativeFlavors,
    gpu_idle,
    smallest_sufficient,
)
from jupyter_to_job.domain.errors import NeverFits
from jupyter_to_job.flavors import parse_catalog
from jupyter_to_job.service.submitting.alternatives import alternative_flavors

GIB = 1 << 30
SMALL = Alternative("small", 1, 2 * GIB, 7200)
MEDIUM = Alternative("medium", 2, 8 * GIB, 28_800)
NO_GPU = Alternative("no-gpu", 4, 16 * GIB, None, frees_gpu=True)
RUN = {
    "wall": 600.0, "memory_peak": GIB, "cpu_mean": 0.9, "cpu_peak": 1.0,
    "gpu_memory_peak": None, "gpu_utilisation_peak": None,
}  # fmt: skip
CATALOG = """
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: 1, memory: 2Gi, max_runtime: 2h, devices: [cpu]}
  tiny: {cpu: 500m, memory: 512Mi, devices: [cpu]}
  wide: {cpu: 8, memory: 4Gi, devices: [cpu]}
  large: {cpu: 8, memory: 32Gi, devices: [cpu]}
  huge: {cpu: 64, memory: 512Gi, devices: [cpu]}
  lab: {cpu: 1, memory: 1Gi, devices: [cpu], allowed: {groups: [research]}}
  gpu: {cpu: 2, memory: 8Gi, gpus: 1, devices: [t4, a100, tenth]}
  gpu-more: {cpu: 4, memory: 16Gi, gpus: 1, devices: [t4, tenth]}
  gpu-4: {cpu: 4, memory: 16Gi, gpus: 4, devices: [t4]}
devices:
  cpu: {}
  t4: {resource: nvidia.com/gpu}
  a100: {resource: nvidia.com/gpu}
  tenth: {limits: {nvidia.com/gpu: 1, nvidia.com/gpucores: 10}}
"""


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "small"),
        ({"wall": MIN_WALL - 1}, None),
        ({"memory_peak": int(1.7 * GIB)}, "medium"),  # with its margin over 2 GiB
        ({"memory_peak": 7 * GIB}, None),
        ({"cpu_peak": 4.0, "cpu_mean": 0.3}, "small"),  # for moments: a quarter longer at worst
        ({"cpu_peak": 4.0, "cpu_mean": 0.9}, "medium"),
        ({"cpu_peak": 4.0, "cpu_mean": 3.5}, None),
        ({"wall": 7000.0}, "medium"),  # too near to the limit of two hours
        ({"wall": 30_000.0}, None),
        ({"cpu_mean": None}, None),
        ({"cpu_peak": None}, None),
        ({"memory_peak": None}, None),
        ({"wall": None}, None),
        ({"wall": True}, None),
        ({"memory_peak": "much"}, None),
    ],
)
def test_the_smallest_that_would_have_done(changed: dict[str, Any], name: str | None) -> None:
    assert smallest_sufficient([SMALL, MEDIUM], {**RUN, **changed}) == name


@pytest.mark.parametrize(
    ("busy", "memory", "idle"),
    [
        (0.0, 0, True),
        (0.0, 500 << 20, True),  # what a driver takes for itself
        (0.0, 4 * GIB, False),  # a model that waits is a use
        (0.01, 0, False),
        (None, 0, True),
        (None, 10 << 20, None),
        (None, None, None),
        (0.0, None, True),
    ],
)
def test_without_the_gpu_only_if_it_was_idle(
    busy: float | None, memory: int | None, idle: bool | None
) -> None:
    run = {**RUN, "gpu_utilisation_peak": busy, "gpu_memory_peak": memory}
    assert gpu_idle(run) is idle
    assert smallest_sufficient([NO_GPU], run) == ("no-gpu" if idle else None)


runs = st.fixed_dictionaries(
    {
        "wall": st.floats(0, 40_000),
        "memory_peak": st.floats(0, 10.0 * GIB),
        "cpu_mean": st.none() | st.floats(0, 4),
        "cpu_peak": st.floats(0, 8),
    }
)


@given(runs)
def test_what_is_enough_held_all_that_was_used(run: dict[str, float | None]) -> None:
    chosen = smallest_sufficient([SMALL, MEDIUM], run)
    if chosen is not None:
        got = {"small": SMALL, "medium": MEDIUM}[chosen]
        assert (run["memory_peak"] or 0) < got.memory
        assert (run["wall"] or 0) < (got.max_runtime or 0)
        assert (run["cpu_mean"] or 0) <= MAX_SLOWDOWN * got.cpu


def _read(document: dict[str, Any]) -> AlternativeFlavors:
    return read_fields(AlternativeFlavors, json.loads(json.dumps(document)))


def around(
    flavor: str, device: str | None = None, *groups: str, cores: int = 16
) -> tuple[list[str], str | None]:
    catalog = parse_catalog(CATALOG.encode(), "flavors.yaml")

    def admit(demand: Mapping[str, Decimal]) -> None:
        if demand["cpu"] > cores:
            raise NeverFits("Too many cores.")

    mine = frozenset(groups)
    found = alternative_flavors(catalog, catalog.choose(flavor, device, mine), mine, admit)
    assert _read(asdict(found)) == found
    newer = {"smaller": [{**asdict(each), "new": 1} for each in found.smaller], "new": 1}
    assert _read({**asdict(found), **newer}) == found
    return [each.flavor for each in found.smaller], found.larger


def test_the_flavors_around_one() -> None:
    assert around("small") == (["tiny"], "wide")
    assert around("small", None, "research") == (["tiny", "lab"], "wide")
    assert around("small", cores=4) == (["tiny"], None)
    assert around("large") == (["tiny", "small", "wide"], None)  # huge fits nowhere here
    assert around("large", cores=64)[1] == "huge"
    assert around("tiny") == ([], "small")


def test_with_a_gpu_others_of_the_same_device_and_those_without() -> None:
    without = ["tiny", "small", "wide", "large", "huge"]
    assert around("gpu-more", "t4") == ([*without, "gpu"], None)
    assert around("gpu-more", "tenth") == ([*without, "gpu"], None)
    assert around("gpu", "t4") == (without, "gpu-more")
    assert around("gpu", "a100") == (without, None)
    assert around("gpu-4") == (without, None)  # what one of four would do nobody measured
