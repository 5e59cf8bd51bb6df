"""Killed by the operating system for memory: in real control groups, and as files tell of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from job_runner.resources import host_memory

from .. import pretend_cgroups
from .jobs import Job, banner, notebook, until

MIB = 1 << 20
LIMIT = 400 * MIB
FILL = "def fill(size): return bytearray(b'x') * size\n"
HUNGRY = "x = []\nwhile True: x.append(fill(1 << 24))"
SPARE = "open('/proc/self/oom_score_adj', 'w').write('-1000')\n"
"""In a kernel that is not to be killed: Linux may kill again before the first one's memory is free,
and the runner sees to it that its kernel is a better choice than itself."""
SACRIFICE = """\
import subprocess
lure = 'echo 900 > /proc/self/oom_score_adj; exec sleep 100'
lures = [subprocess.Popen(['sh', '-c', lure]) for _ in range(8)]
while any(open(f'/proc/{p.pid}/oom_score_adj').read() != '900\\n' for p in lures): pass
"""
"""What is killed instead where nobody may be spared: that needs CAP_SYS_RESOURCE."""
WORKER = f"""\
{SPARE}{SACRIFICE}import multiprocessing, concurrent.futures as futures
{FILL}
def hungry(_):
    import os
    open('/proc/self/oom_score_adj', 'w').write('1000')
    x = []
    while True: x.append(fill(1 << 24))
context = multiprocessing.get_context('fork')
"""
POOL = f"{WORKER}pool = futures.ProcessPoolExecutor(1, mp_context=context)\n"
HANGING = f"{WORKER}context.Pool(1).map(hungry, [1])\n"


class _Group:
    """A control group with a limit, that a runner can be started in."""

    def __init__(self, folder: Path, limit: str, swap: str) -> None:
        folder.mkdir()
        self._folder = folder
        (folder / limit).write_text(str(LIMIT))
        if (folder / swap).exists():
            (folder / swap).write_text(str(LIMIT) if swap.startswith("memory.memsw") else "0")

    @property
    def enter(self) -> tuple[str, ...]:
        """What comes before a command line to have it run in here."""
        return "sh", "-c", f'echo $$ > {self._folder}/cgroup.procs; exec "$@"', "sh"

    @property
    def enter_spared(self) -> tuple[str, ...]:
        """The same; what is run so is not killed for memory."""
        return "sh", "-c", 'echo -1000 > /proc/self/oom_score_adj; exec "$@"', "sh", *self.enter

    def run(self, job: Job, *, spared: bool = False) -> int:
        return int(job.start(before=self.enter_spared if spared else self.enter).wait(timeout=60))

    @contextmanager
    def stranger(self, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A process that is hungry, and the first to be killed, once there is a file `go`."""
        source = f"""{FILL}
import pathlib, time
open('/proc/self/oom_score_adj', 'w').write('1000')
while not pathlib.Path('go').exists(): time.sleep(0.1)
{HUNGRY}"""
        command = [*self.enter, sys.executable, "-c", source]
        with subprocess.Popen(command, cwd=folder, start_new_session=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def remove(self) -> None:
        procs = self._folder / "cgroup.procs"
        until(lambda: not procs.read_text().strip(), "an empty control group")
        self._folder.rmdir()


@pytest.fixture(params=["version 1", "version 2"])
def group(request: pytest.FixtureRequest) -> Iterator[_Group]:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a control group")
    name = f"job-runner-test-{os.getpid()}"
    root = Path("/sys/fs/cgroup")
    if request.param == "version 1":
        folder, limit, swap = (
            root / "memory",
            "memory.limit_in_bytes",
            "memory.memsw.limit_in_bytes",
        )
        if not (folder / limit).exists():
            pytest.skip("no memory controller of version 1 is mounted here")
    else:
        folder, limit, swap = root, "memory.max", "memory.swap.max"
        control = root / "cgroup.subtree_control"
        if not control.exists() or "memory" not in control.read_text():
            pytest.skip("the memory controller is not one of version 2 here")
    try:
        made = _Group(folder / name, limit, swap)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield made
    made.remove()


def test_a_killed_kernel(group: _Group, job: Callable[..., Job]) -> None:
    hungry = job(notebook("print('kept')", f"{FILL}{HUNGRY}"))
    assert group.run(hungry) == 4
    outcome = hungry.outcome()
    assert outcome.reason == "OutOfMemory"
    said = "The run used 400 of 400 MiB in cell 2 and was killed for it; what was printed is kept."
    assert str(outcome.message).startswith(said)
    assert "Choose a larger flavor" in str(outcome.message)
    assert hungry.printed() == "kept\n"
    assert f"OutOfMemory: {said}" in banner(hungry.result())[0]


def test_a_killed_worker(group: _Group, job: Callable[..., Job]) -> None:
    """The kernel lives, and the cell raises what the pool makes of it."""
    hungry = job(notebook("print('kept')", f"{POOL}list(pool.map(hungry, [1]))"))
    assert group.run(hungry, spared=True) == 1
    outcome = hungry.outcome()
    assert outcome.reason == "OutOfMemory"
    said = "A process of cell 2 (In [2]) was killed for memory: the run used 400 of 400 MiB (Broken"
    assert str(outcome.message).startswith(said)
    assert said.replace("[", "&#91;").replace("]", "&#93;") in banner(hungry.result())[0]


def test_a_killed_worker_that_nobody_misses(group: _Group, job: Callable[..., Job]) -> None:
    """multiprocessing's own pool waits for ever: the deadline's message says what was before."""
    hungry = job(notebook(HANGING), max_runtime=10)
    assert group.run(hungry, spared=True) == 5
    outcome = hungry.outcome()
    assert outcome.reason == "DeadlineExceeded"
    killed = r"killed (a process|\d processes) of this run for memory \(400 of 400 MiB used\)"
    assert re.search(killed, str(outcome.message))
    assert re.search(killed, hungry.printed())  # and whoever looked on read it then


def test_a_stranger_that_was_killed(group: _Group, job: Callable[..., Job], tmp_path: Path) -> None:
    """What else shares the group, as on a laptop, is not taken for a process of the run."""
    source = (
        f"{SPARE}import pathlib, time\npathlib.Path('go').touch()\n"
        "while not pathlib.Path('killed').exists(): time.sleep(0.1)\ntime.sleep(2)"
    )
    made = job(notebook(source, "raise RuntimeError('a worker exited unexpectedly')"))
    with group.stranger(tmp_path) as stranger:
        process = made.start(before=group.enter_spared)
        stranger.wait(timeout=60)
        (tmp_path / "killed").touch()
        assert process.wait(timeout=60) == 1
    assert stranger.returncode == -signal.SIGKILL
    assert "killed" not in made.printed()
    assert (made.outcome().reason, made.outcome().message) == (
        "CellError",
        "Cell 2 (In [2]) raised RuntimeError: a worker exited unexpectedly.",
    )


@pytest.mark.parametrize("alone", [True, False])
def test_whose_kill_it_was(alone: bool, tmp_path: Path) -> None:
    """In a group of others a kill counts if a process of the run goes at about that time."""
    procs = f"{os.getpid()}\n{'' if alone else '0'}\n"
    files = {"memory.events": "oom_kill 2\n", "cgroup.procs": procs}
    proc = pretend_cgroups.build(tmp_path, "0::/\n", files)
    events = tmp_path / "memory.events"
    with subprocess.Popen(["sleep", "100"]) as worker:
        kills = host_memory.OomKillCounter(worker.pid, proc)
        pids = [os.getpid(), worker.pid]
        assert (kills.alone, kills.count(pids)) == (alone, 0)
        events.write_text("oom_kill 3\n")
        assert kills.count(pids) == (1 if alone else 0)
        worker.kill()
        until(lambda: kills.count(pids) == 1, "a kill that is explained")
    events.write_text("oom_kill 5\n")
    assert kills.count(pids) == 3


@pytest.mark.parametrize(
    ("own", "files", "peak"),
    [
        ("0::/pod/a\n", {"pod/a/memory.peak": "4096\n"}, 4096),
        ("0::/outside\n", {"memory.peak": "4096\n"}, 4096),
        ("4:memory:/a\n0::/\n", {"memory/a/memory.max_usage_in_bytes": "8192\n"}, 8192),
        ("4:cpu,memory:/x\n", {"memory/memory.max_usage_in_bytes": "8192\n"}, 8192),
        ("0::/\n", {}, None),
    ],
)
def test_the_peak_is_read_from_both_versions(
    own: str, files: dict[str, str], peak: int | None, tmp_path: Path
) -> None:
    assert host_memory.peak(pretend_cgroups.build(tmp_path, own, files)) == peak


@pytest.mark.parametrize(
    ("own", "files", "ceiling"),
    [
        ("0::/pod/a\n", {"pod/a/memory.max": "max\n", "pod/memory.max": "4096\n"}, 4096),
        (
            "4:memory:/pod/a\n",
            {
                "memory/pod/a/memory.limit_in_bytes": f"{(1 << 63) - 4096}\n",
                "memory/pod/memory.limit_in_bytes": "8192\n",
            },
            8192,
        ),
    ],
)
def test_the_limits_of_the_groups_around_ours_count(
    own: str, files: dict[str, str], ceiling: int, tmp_path: Path
) -> None:
    proc = pretend_cgroups.build(tmp_path, own, files)
    assert host_memory.effective_limit(None, proc) == ceiling
