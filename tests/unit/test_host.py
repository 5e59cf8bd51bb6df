"""CPUs, memory and GPUs as control groups (of both versions) and environment leave them to us."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from job_runner.host.cgroups import usable_cpus, usable_memory
from jupyter_to_job.backends.local.gpus import GPU, MIG
from jupyter_to_job.backends.local.nvml import visible

INSTALLED = (usable_cpus(Path("/nowhere")), usable_memory(Path("/nowhere")))
"""What there is without any control group."""


def proc(folder: Path, groups: str, mounts: str, **files: str) -> Path:
    """A /proc with these control groups mounted below `folder`; `__` in a file's name is `/`."""
    made = folder / "proc" / "self"
    made.mkdir(parents=True)
    (made / "cgroup").write_text(groups)
    (made / "mountinfo").write_text(mounts.format(folder))
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return made.parent


V2 = "29 23 0:26 / {}/cg rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
V1 = (
    "32 31 0:29 / {0}/cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / {0}/cg/memory rw - cgroup cgroup rw,memory\n"
)


def test_no_control_groups() -> None:
    assert INSTALLED[0] >= 1 and INSTALLED[1] > 2**27


def test_version_2_counts_the_folders_above_too(tmp_path: Path) -> None:
    found = proc(
        tmp_path,
        "0::/user/me\n",
        V2,
        cg__user__cpu_DOT_max="150000 100000\n",
        cg__user__me__cpu_DOT_max="max 100000\n",
        cg__user__me__memory_DOT_max="104857600\n",
        cg__user__memory_DOT_max="max\n",
    )
    assert usable_cpus(found) == min(INSTALLED[0], Decimal("1.5"))
    assert usable_memory(found) == 100 * 2**20


def test_version_1(tmp_path: Path) -> None:
    found = proc(
        tmp_path,
        "4:memory:/box\n2:cpu,cpuacct:/box\n",
        V1,
        **{
            "cg__cpu,cpuacct__box__cpu_DOT_cfs_quota_us": "100000\n",
            "cg__cpu,cpuacct__box__cpu_DOT_cfs_period_us": "100000\n",
            "cg__memory__box__memory_DOT_limit_in_bytes": "52428800\n",
            "cg__memory__memory_DOT_limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert usable_cpus(found) == 1
    assert usable_memory(found) == 50 * 2**20


def test_a_container_sees_its_group_as_the_root(tmp_path: Path) -> None:
    """The mount's root is the container's group; /proc/self/cgroup gives that one's whole path."""
    found = proc(
        tmp_path,
        "0::/kubepods/pod1/box\n",
        V2.replace(" / ", " /kubepods/pod1/box "),
        cg__memory_DOT_max="104857600\n",
    )
    assert usable_memory(found) == 100 * 2**20


def test_less_than_a_core_is_one(tmp_path: Path) -> None:
    assert usable_cpus(proc(tmp_path, "0::/\n", V2, cg__cpu_DOT_max="20000 100000\n")) == 1


@pytest.mark.parametrize("text", ["", "-1 100000", "garbage", "max", "0 0"])
def test_no_limit(tmp_path: Path, text: str) -> None:
    assert usable_cpus(proc(tmp_path, "0::/\n", V2, cg__cpu_DOT_max=text)) == INSTALLED[0]


PART = f"{MIG}1g.10gb"
GPUS = [
    [(PART, "MIG-a"), (PART, "MIG-b")],
    [(GPU, "GPU-one")],
    [],  # in MIG mode, and not partitioned
    [(GPU, "GPU-three")],
]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (None, {PART: ["MIG-a", "MIG-b"], GPU: ["GPU-one", "GPU-three"]}),
        ("", {}),
        ("-1", {}),
        ("NoDevFiles", {}),
        ("3, 1", {GPU: ["GPU-three", "GPU-one"]}),
        ("1,1", {GPU: ["GPU-one"]}),
        ("GPU-t,MIG-b", {GPU: ["GPU-three"], PART: ["MIG-b"]}),
        ("0", {PART: ["MIG-a"]}),
        ("1,4,3", {GPU: ["GPU-one"]}),
        ("1,GPU-x,3", {GPU: ["GPU-one"]}),
        ("1,2,3", {GPU: ["GPU-one"]}),
        ("1,,3", {GPU: ["GPU-one"]}),
    ],
)
def test_gpus_that_the_environment_leaves(
    shown: str | None, expected: dict[str, list[str]]
) -> None:
    environ = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
    assert visible(GPUS, environ) == expected


def test_a_job_lends_out_the_machine_and_not_its_own_share() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "", "JUPYTER_TO_JOB_ATTEMPT": "/exchange/job/attempt-1"}
    assert visible(GPUS, environ) == visible(GPUS, {})
