"""Parts of the runner that a run alone does not reach: strange kernels, other control groups."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from job_runner import engine as engine_module
from job_runner import memory
from job_runner.engine import Engine
from job_runner.kernel import Kernel
from job_runner.memory import oom_kills
from job_runner.messages import record_of
from job_runner.protocol import liveness
from job_runner.usage import Usage


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
    record = record_of(kind, content, 0)
    assert record is not None
    output = nbformat.from_dict(record["output"])
    nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=[output])]))


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("status", {"execution_state": "busy"}),
        ("execute_input", {"execution_count": 1}),
        ("update_display_data", {"data": {}}),
        ("comm_msg", {"comm_id": "a", "data": {"method": "custom"}}),
        ("comm_close", {"comm_id": "a"}),
        ("from the future", {}),
    ],
)
def test_what_changes_nothing_in_a_notebook_is_no_record(
    kind: str, content: dict[str, Any]
) -> None:
    assert record_of(kind, content, 0) is None


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
    (tmp_path / "self").write_text(own)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert oom_kills(tmp_path, tmp_path / "self") == count


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
    (tmp_path / "self").write_text(own)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert memory.ceiling(limit, tmp_path, tmp_path / "self") == ceiling


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


def test_a_death_is_noticed_without_pidfds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(_pid: int) -> int:
        raise OSError("no such call")

    monkeypatch.setattr(os, "pidfd_open", missing)

    async def run() -> int | None:
        kernel = Kernel("python3", str(tmp_path))
        try:
            await kernel.start(tmp_path, {})
            os.kill(kernel.pid, signal.SIGSEGV)
            await asyncio.wait_for(kernel.died.wait(), 5)
            return kernel.exit_status()
        finally:
            await kernel.close(kindly=False)
            assert not kernel.folder.exists()

    assert asyncio.run(run()) == -signal.SIGSEGV


class _Forgetful:
    """A kernel whose queue lost the `idle` of a cell, and that answers the question after it."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.replies: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def execute(self, code: str) -> str:
        self.replies.put_nowait(
            {"parent_header": {"msg_id": code}, "content": {"status": "ok", "payload": []}}
        )
        self._publish(code, "stream", {"name": "stdout", "text": "kept"})
        return code

    def ask(self) -> str:
        self._publish("question", "status", {"execution_state": "idle"})
        return "question"

    def _publish(self, parent: str, kind: str, content: dict[str, Any]) -> None:
        message = {"parent_header": {"msg_id": parent}, "msg_type": kind, "content": content}
        self.published.put_nowait(message)

    async def iopub(self) -> dict[str, Any]:
        return await self.published.get()

    async def shell(self) -> dict[str, Any]:
        return await self.replies.get()


def test_a_lost_idle_does_not_hang_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_PATIENCE", 0.05)
    records: list[dict[str, Any]] = []

    async def run() -> Any:
        engine = Engine(_Forgetful(), records.append)  # type: ignore[arg-type]
        cells = [(0, {"source": "a", "metadata": {}}), (1, {"source": "b", "metadata": {}})]
        return await asyncio.wait_for(engine.run(cells), 10)

    assert asyncio.run(run()).reason is None
    assert [r["k"] for r in records] == ["cell_start", "output", "cell_end"] * 2


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


def test_a_kernel_that_does_nothing_more_is_not_waited_for(tmp_path: Path) -> None:
    """Not even if it has a child, which does nothing either: a shell that it drives, a pool."""
    source = (
        "import atexit, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "atexit.register(time.sleep, 60)"
    )

    async def run() -> float:
        kernel = Kernel("python3", str(tmp_path))
        try:
            await kernel.start(tmp_path, {})
            await kernel.ready()
            await Engine(kernel, lambda _: None).run([(0, {"source": source, "metadata": {}})])
        finally:
            began = time.monotonic()
            await kernel.close(kindly=True)
        return time.monotonic() - began

    assert asyncio.run(run()) < 8  # what is at work has 10 s


def test_exit_handlers_have_time_to_upload(tmp_path: Path) -> None:
    source = (
        "import atexit, subprocess, pathlib\n"
        "def upload():\n"
        "    subprocess.run(['sleep', '1.5'])\n"
        "    pathlib.Path('uploaded').touch()\n"
        "atexit.register(upload)"
    )

    async def run() -> None:
        kernel = Kernel("python3", str(tmp_path))
        try:
            await kernel.start(tmp_path, {})
            await kernel.ready()
            await Engine(kernel, lambda _: None).run([(0, {"source": source, "metadata": {}})])
        finally:
            await kernel.close(kindly=True)

    asyncio.run(run())
    assert (tmp_path / "uploaded").exists()
