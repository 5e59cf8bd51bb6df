"""Parts of the runner that a run alone does not reach: strange kernels, other control groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from job_runner.host.cgroups import cgroup_folders
from job_runner.kernel.messages import records_of
from job_runner.protocol import liveness
from job_runner.resources import host_memory
from job_runner.resources.host_memory import read_oom_kills
from job_runner.resources.usage import Usage

from .. import pretend_cgroups


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("stream", {}),
        ("stream", {"name": "stdout", "text": ["a", "b"]}),
        ("display_data", {}),
        ("display_data", {"data": {"text/plain": 3, "text/html": ["a", "b"]}, "metadata": None}),
        ("display_data", {"data": {"application/json": {"a": 1}}, "transient": None}),
        ("execute_result", {"data": {"text/plain": {"no": "text"}}}),
        ("error", {}),
        ("error", {"ename": None, "evalue": 3, "traceback": None}),
    ],
)
def test_whatever_a_kernel_says_is_valid_output(kind: str, content: dict[str, Any]) -> None:
    (record,) = records_of(kind, content, 0)
    output = nbformat.from_dict(record["output"])
    nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=[output])]))


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("status", {"execution_state": "busy"}),
        ("execute_input", {"execution_count": 1}),
        ("update_display_data", {"data": {}}),
        ("comm_msg", {"comm_id": "a", "data": {"method": "custom"}}),
        ("from the future", {}),
    ],
)
def test_what_changes_nothing_in_a_notebook_is_no_record(
    kind: str, content: dict[str, Any]
) -> None:
    assert list(records_of(kind, content, 0)) == []


@pytest.mark.parametrize(
    ("own", "files", "count"),
    [
        ("0::/pod/a\n", {"pod/a/memory.events": "low 0\noom 5\noom_kill 2\n"}, 2),
        ("0::/outside\n", {"memory.events": "oom_kill 3\n"}, 3),
        ("4:memory:/a\n0::/\n", {"memory/a/memory.oom_control": "under_oom 0\noom_kill 1\n"}, 1),
        ("4:memory:/outside\n", {"memory/memory.oom_control": "oom_kill 4\n"}, 4),
        ("0::/\n", {}, 0),
        ("0::/\n", {"memory.events": "oom_kill many\n"}, 0),
    ],
)
def test_oom_kills_are_read_from_both_versions_of_control_groups(
    own: str, files: dict[str, str], count: int, tmp_path: Path
) -> None:
    proc = pretend_cgroups.build(tmp_path, own, files)
    assert read_oom_kills(cgroup_folders("memory", proc)) == count


@pytest.mark.parametrize(
    ("own", "files", "limit", "ceiling"),
    [
        ("0::/pod/a\n", {"pod/a/memory.max": "4096\n"}, None, 4096),
        ("0::/outside\n", {"memory.max": "4096\n"}, 1024, 1024),
        ("4:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096\n"}, 8192, 4096),
        ("0::/\n", {"memory.max": "max\n"}, 2048, 2048),
        ("0::/\n", {}, None, psutil.virtual_memory().total),
    ],
)
def test_the_least_of_all_limits_counts(
    own: str, files: dict[str, str], limit: int | None, ceiling: int, tmp_path: Path
) -> None:
    proc = pretend_cgroups.build(tmp_path, own, files)
    assert host_memory.effective_limit(limit, proc) == ceiling


def test_usage_is_null_where_unknown() -> None:
    usage = Usage()
    assert set(usage.to_json().values()) == {None}
    usage.memory.add(100)
    usage.add_cpu(7.0, 10.5)
    assert (usage.to_json()["memory_peak"], usage.to_json()["cpu_mean"]) == (100, None)
    usage.memory.add(300)
    usage.add_cpu(8.5, 11.5)
    seen = usage.to_json()
    assert (seen["memory_peak"], seen["memory_mean"]) == (300, 200)
    assert (seen["cpu_peak"], seen["cpu_mean"]) == (1.5, 1.5)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), min_size=1))
def test_no_mean_is_above_its_peak(steps: list[tuple[int, int]]) -> None:
    """Whatever was used before the first look, and whichever children were not waited for."""
    usage, moment = Usage(), 0
    for cpu_seconds, pause in steps:
        moment += pause
        usage.add_cpu(cpu_seconds, moment)
    seen = usage.to_json()
    assert (seen["cpu_peak"] is None) is (seen["cpu_mean"] is None)
    if seen["cpu_peak"] is not None:
        assert 0 <= seen["cpu_mean"] <= seen["cpu_peak"] + 0.001


def test_looking_does_not_keep_anybody_from_finishing(tmp_path: Path) -> None:
    claim = liveness.claim_attempt(tmp_path, 1)
    assert liveness.is_alive(claim.directory)
    with pytest.raises(liveness.AttemptAlive):
        liveness.take_over(claim.directory)
    with pytest.raises(liveness.AttemptExists):
        liveness.claim_attempt(tmp_path, 1)
    claim.release()
    assert not liveness.is_alive(claim.directory)
    liveness.take_over(claim.directory).release()
