"""papermill's documented behaviour, and ours held to it: papermill itself is the oracle.

Each example runs once with papermill, once with our runner, once with our engine in papermill.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import papermill
import psutil
import pytest

from job_runner.protocol.result.result import fold_result
from job_runner.protocol.result.spool import Spool

from ..processes import gone
from .jobs import BOUND, RUNNER, code, until
from .papermill_behaviours import BEHAVIOURS, Behaviour
from .papermill_examples import (
    ENGINE,
    OURS,
    PAPERMILL,
    SIDES,
    WITH_ENGINE,
    Ran,
    comparable,
    document,
    run,
    run_all,
    text,
)

Everything = dict[tuple[str, str], Ran]
SAME = ["simple_execute", "no_parameters", "ran_before", "nb_version_3", "broken", "bash"]
SAME_WITH_ENGINE = ["simple_execute", "broken", "raises_exception", "sysexit0", "sysexit1"]
SAME_WITH_ENGINE += ["shown_errors"]
SEEN = [
    pytest.param(behaviour, side, id=f"{behaviour.says}-{side}")
    for behaviour in BEHAVIOURS
    for side in SIDES
    if side != ENGINE or behaviour.example in WITH_ENGINE
]


# The first test waits for the fixture: on a machine that does four other things it takes minutes.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Everything:
    data = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "bash_kernel.install", "--prefix", str(data)]
    subprocess.run(command, check=True, timeout=BOUND)
    return run_all(tmp_path_factory.mktemp("examples"), str(data / "share" / "jupyter"))


@pytest.mark.parametrize(("behaviour", "side"), SEEN)
def test_behaviour(everything: Everything, behaviour: Behaviour, side: str) -> None:
    ran = everything[behaviour.example, side]
    assert behaviour.look(ran) == behaviour.expected(SIDES.index(side)), ran.stderr


@pytest.mark.parametrize(
    ("name", "side"),
    [*((name, OURS) for name in SAME), *((name, ENGINE) for name in SAME_WITH_ENGINE)],
)
def test_the_whole_notebook_is_papermills(everything: Everything, name: str, side: str) -> None:
    """What no row names is the same, too."""
    theirs, ours = everything[name, PAPERMILL], everything[name, side]
    assert comparable(ours.result) == comparable(theirs.result)
    assert (ours.code, theirs.code) == (theirs.code, ours.code)


def test_output_is_copied_to_log_and_files(everything: Everything) -> None:
    """`--log-output`, `--stdout-file`, `--stderr-file`: with our engine as with papermill's."""
    theirs, ours = everything["outputs", PAPERMILL], everything["outputs", ENGINE]
    for name in ("stdout.txt", "stderr.txt"):
        assert ours.outputs(name) == theirs.outputs(name) != ""
    logged = ["out", "err", "'value'", "Executing Cell 1", "Ending Cell 5"]
    assert [word for word in logged if word not in theirs.stderr] == []
    assert [word for word in logged if word not in ours.stderr] == []


def test_statuses_while_it_runs(tmp_path: Path) -> None:
    """Pending, running, completed: in papermill's file, and folded from our journal so far."""
    waits = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)"
    (tmp_path / "in.ipynb").write_text(text("1", waits, "2"))
    theirs = [sys.executable, "-m", "papermill", "in.ipynb", "theirs.ipynb"]
    ours = [*RUNNER, "run", "--input", "in.ipynb", "--output", "ours.ipynb"]
    processes = [subprocess.Popen(command, cwd=tmp_path) for command in (theirs, ours)]
    job = tmp_path / ".ours.ipynb.job"
    expected = ["completed", "running", "pending"]
    try:
        until(lambda: _statuses(_read(tmp_path / "theirs.ipynb")) == expected, "papermill's file")
        until(lambda: (job / "attempt-1").exists(), "an attempt")
        until(lambda: _statuses(_folded(job)) == expected, "ours")
    finally:
        (tmp_path / "go").touch()
    assert [process.wait(BOUND) for process in processes] == [0, 0]
    assert _statuses(_read(tmp_path / "theirs.ipynb")) == ["completed"] * 3
    assert _statuses(_read(tmp_path / "ours.ipynb")) == ["completed"] * 3


def _folded(job: Path) -> Any:
    with fold_result(job, job / "attempt-1", Spool.in_memory()) as result:
        return json.loads(b"".join(result.chunks()))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):  # papermill has not written it, or is about to
        return None


def _statuses(notebook: Any) -> list[str | None]:
    cells = notebook["cells"] if notebook else []
    return [cell["metadata"].get("papermill", {}).get("status") for cell in cells]


def test_a_cell_takes_too_long(tmp_path: Path) -> None:
    """The limit is for the first cell, too, so it is no short one."""
    (tmp_path / "in.ipynb").write_text(text("print('kept')", "import time; time.sleep(100)"))
    results = {PAPERMILL: "theirs.ipynb", ENGINE: "ours.ipynb"}

    def run_one(side: str) -> Ran:
        return run(side, tmp_path, ["in.ipynb", results[side], "--execution-timeout", "5"])

    with ThreadPoolExecutor(2) as pool:
        for ran, result in zip(pool.map(run_one, results), results.values(), strict=True):
            assert ran.code == 1, result
            assert "CellTimeoutError" in ran.stderr, result
            assert "kept" in (tmp_path / result).read_text()


@pytest.mark.parametrize("side", [PAPERMILL, ENGINE])
@pytest.mark.parametrize("command", [["sleep", "100"], ["false"]], ids=["mute", "dead"])
def test_a_kernel_does_not_answer(tmp_path: Path, side: str, command: list[str]) -> None:
    folder = tmp_path / "data" / "kernels" / "odd"
    folder.mkdir(parents=True)
    spec = {"argv": command, "display_name": "odd", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    (tmp_path / "in.ipynb").write_text(text("1", kernel="odd"))
    # A dead one is not waited for.
    timeout = "2" if command[0] == "sleep" else "1000"
    arguments = ["in.ipynb", "result.ipynb", "--start-timeout", timeout]
    ran = run(side, tmp_path, arguments, JUPYTER_PATH=str(tmp_path / "data"))
    assert ran.code == 1
    assert "RuntimeError" in ran.stderr.splitlines()[-1]


IN_A_LOOP = """\
import asyncio, papermill
async def main():
    papermill.execute_notebook('in.ipynb', 'out.ipynb', engine_name='job_runner')
asyncio.new_event_loop().run_until_complete(main())
"""


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_where_an_event_loop_runs(tmp_path: Path, is_interrupted: bool) -> None:
    """As in a notebook, where an interrupt ends the inner kernel as well."""
    pid = (
        "import os, time\nopen('pid.new', 'w').write(str(os.getpid()))\nos.rename('pid.new', 'pid')"
    )
    waits = "while not os.path.exists('go'): time.sleep(0.02)"
    (tmp_path / "in.ipynb").write_text(text(pid, waits, "print('kept')"))
    process = subprocess.Popen([sys.executable, "-c", IN_A_LOOP], cwd=tmp_path)
    until(lambda: (tmp_path / "pid").exists() or process.poll() is not None, "a kernel")
    assert process.poll() is None
    kernel = psutil.Process(int((tmp_path / "pid").read_text()))
    if is_interrupted:
        process.send_signal(signal.SIGINT)
    else:
        (tmp_path / "go").touch()
    assert (process.wait(timeout=BOUND) == 0) is not is_interrupted
    assert gone(kernel)
    assert ("kept\\n" in (tmp_path / "out.ipynb").read_text()) is not is_interrupted


COMPLEX = """\
msg = None
a: float = 2.25 # Variable a
b = [
    'Hello', # First element
# Dummy comment
    'World'
] # type: List[str] Nice list

# Interesting comment
c: "NoneType" = None
d = 'x=y'
"""


@pytest.mark.parametrize("cell", [code(COMPLEX, "parameters"), code(COMPLEX)], ids=["", "untagged"])
def test_inspect(tmp_path: Path, cell: Any) -> None:
    """Names, inferred types, defaults, help; papermill's word for an unknown type is "None"."""
    path = tmp_path / "in.ipynb"
    path.write_text(json.dumps(document(cell)))
    command = [*RUNNER, "inspect", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=True)
    ours = json.loads(ran.stdout)
    for each in ours:
        each["inferred_type_name"] = each.pop("type") or "None"
    assert ours == list(papermill.inspect_notebook(path).values())
    assert len(ours) == (4 if "tags" in cell.metadata else 0)
