"""Kernels that are not Python's: parameters in their language, their errors, their output.

Bash's is written in Python; Java's is a program of the JVM, with a ZeroMQ of its own that knows no
sockets in a folder, and is interrupted by a message.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from job_runner.protocol import layout

from .jobs import BOUND, RUNNER, Job, banner, changed_runner, make_job, stream, until
from .test_killed import GRACE

Make = Callable[..., Job]
PARAMETERS = {"word": 'it\'s "quoted" $HOME `x`', "count": 3, "flag": True, "nothing": None}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of Jupyter's data with bash's kernel in it."""
    folder = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "bash_kernel.install", "--prefix", str(folder)]
    subprocess.run(command, check=True, timeout=BOUND)
    return str(folder / "share" / "jupyter")


def in_language(kernel: str, *sources: str) -> str:
    made = new_notebook(cells=[new_code_cell(source) for source in sources])
    made.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": kernel}
    return str(nbformat.writes(made))


@pytest.fixture
def java(data: str) -> str:
    """The folder of Java's kernel, which the wheel `jjava` installs as `java`."""
    if shutil.which("java") is None:
        pytest.skip("java is missing (Debian: default-jdk-headless)")
    return data


def bash(*sources: str, tags: dict[int, str] | None = None, named: bool = True) -> str:
    cells = [new_code_cell(source) for source in sources]
    for index, tag in (tags or {}).items():
        cells[index].metadata.tags = [tag]
    made = new_notebook(cells=cells)
    if named:
        made.metadata.kernelspec = {"name": "bash", "display_name": "Bash", "language": "bash"}
    return str(nbformat.writes(made))


def test_parameters_and_output(job: Make, data: str) -> None:
    shell = job(
        bash(
            "word=a", 'echo "$word|$count|$flag|$nothing"', "echo err >&2", tags={0: "parameters"}
        ),
        parameters=PARAMETERS,
    )
    assert shell.run(JUPYTER_PATH=data) == 0, shell.outcome().message
    result = shell.result()
    assert result.cells[1].metadata.tags == ["injected-parameters"]
    assert stream(result.cells[2]) == f"{PARAMETERS['word']}|3|true|\n"
    assert "err" in stream(result.cells[3])
    assert result.metadata.language_info.name == "bash"


def test_the_language_is_that_of_the_kernel_that_runs(job: Make, data: str) -> None:
    """A notebook that names no kernel, run in one that somebody chose."""
    shell = job(bash('echo "$count"', named=False), parameters={"count": "a b"}, kernel="bash")
    assert shell.run(JUPYTER_PATH=data) == 0, shell.outcome().message
    assert stream(shell.result().cells[1]) == "a b\n"


def test_an_error(job: Make, data: str) -> None:
    failing = job(bash("echo kept", "ls /no/such/file", "echo no"))
    assert failing.run(JUPYTER_PATH=data) == 1
    assert (failing.outcome().reason, failing.outcome().cells["done"]) == ("CellError", 1)
    result = failing.result()
    assert len(banner(result)) == 2
    assert "kept\n" in stream(result.cells[1])
    assert "no such file" in str(result.cells[3].outputs).lower()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (bash("a=1", tags={0: "parameters"}), None),
        (bash("a=1"), []),
    ],
    ids=["cannot be told", "declares none"],
)
def test_inspect(tmp_path: Path, source: str, found: Any) -> None:
    (tmp_path / "in.ipynb").write_text(source)
    command = [*RUNNER, "inspect", str(tmp_path / "in.ipynb")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == found


def test_inspect_without_a_kernel_assumes_the_default(tmp_path: Path) -> None:
    source = bash("rate = 0.1  # how fast", tags={0: "parameters"}, named=False)
    (tmp_path / "in.ipynb").write_text(source)
    command = [*RUNNER, "inspect", str(tmp_path / "in.ipynb")]
    ran = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=BOUND, check=True
    )
    assert json.loads(ran.stdout)[0]["name"] == "rate"


def test_java(job: Make, java: str) -> None:
    made = job(
        in_language(
            "java",
            'System.out.println("kept"); System.err.println("err");',
            "int six = 6; six * 7",
            "for (int i = 0; i < 500; i++) System.out.println(i);",
            'throw new IllegalStateException("no");',
            "1",
        )
    )
    assert made.run(JUPYTER_PATH=java) == 1, made.outcome().message
    assert (made.outcome().reason, made.outcome().cells["done"]) == ("CellError", 3)
    cells = made.result().cells[1:]
    assert {o.name: o.text for o in cells[0].outputs} == {"stdout": "kept\n", "stderr": "err\n"}
    assert cells[1].outputs[0].data["text/plain"] == "42"
    assert stream(cells[2]) == "".join(f"{i}\n" for i in range(500))
    assert "IllegalStateException" in str(cells[4].outputs)
    assert made.result().metadata.language_info.name == "Java"


LONG = {
    "python3": (
        "import time\n"
        "try:\n    print('kept', flush=True)\n    time.sleep(100)\n"
        "finally:\n    print('cleaned up')",
        "kept\ncleaned up\n",
        "KeyboardInterrupt",
    ),
    "bash": ("echo kept; sleep 100", "kept\n", None),
    "java": (
        '{ System.out.println("kept"); Thread.sleep(100000); }',
        "kept\n",
        "EvaluationInterruptedException",
    ),
}
ENOUGH = 10
"""Seconds in which a cell has surely printed, on a loaded machine, too."""


@pytest.mark.parametrize("kernel", LONG)
def test_a_cell_that_is_stopped_is_interrupted(
    job: Make, request: pytest.FixtureRequest, data: str, kernel: str
) -> None:
    if kernel == "java":
        request.getfixturevalue("java")
    made = job(in_language(kernel, LONG[kernel][0], "echo no"))
    process = made.start(JUPYTER_PATH=data)
    until(lambda: made.attempt().exists() and "kept" in made.printed(), "output")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=BOUND) == 143
    assert time.monotonic() - began < GRACE
    check_interrupted(made, kernel, "Terminated")


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory, data: str) -> Iterator[dict[str, Job]]:
    """A run in each kernel that ends at its time limit: they wait for it beside each other."""
    folder = tmp_path_factory.mktemp("exchange")
    made = {
        kernel: make_job(
            folder / kernel, in_language(kernel, source, "echo no"), max_runtime=ENOUGH
        )
        for kernel, (source, _, _) in LONG.items()
        if kernel != "java" or shutil.which("java") is not None
    }
    processes = [each.start(JUPYTER_PATH=data) for each in made.values()]
    yield made
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kernel", LONG)
def test_a_cell_that_is_late_is_interrupted(
    request: pytest.FixtureRequest, late: dict[str, Job], kernel: str
) -> None:
    if kernel == "java":
        request.getfixturevalue("java")
    assert late[kernel].processes[0].wait(timeout=BOUND) == 5
    check_interrupted(late[kernel], kernel, "DeadlineExceeded")


def check_interrupted(made: Job, kernel: str, reason: str) -> None:
    """The cell says itself where it was; how the run ended is our word all the same."""
    _, printed, error = LONG[kernel]
    outcome = made.outcome()
    assert (outcome.reason, outcome.cells["done"]) == (reason, 0)
    first = next(c for c in made.result().cells if c.cell_type == "code")
    assert stream(first).startswith(printed)
    raised = [o.ename for o in first.outputs if o.output_type == "error"]
    assert error is None or (len(raised) == 1 and error in raised[0])
    assert first.metadata.papermill.status == "failed"


def test_what_swallows_the_interrupt_did_not_succeed(job: Make) -> None:
    """As training loops do, or to write down what they have; what heeds none is ended, too."""
    source = (
        "import time\n"
        "try:\n    print('kept', flush=True)\n    time.sleep(100)\n"
        "except KeyboardInterrupt:\n    print('well then')"
    )
    # Longer than the half second in which output is awaited of a cell that was given up.
    saving = source.replace("print('well then')", "time.sleep(0.7)\n    print('saved')")
    deaf = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('kept')\n"
    deaf += "time.sleep(100)"
    told = ((source, "kept\nwell then\n"), (saving, "kept\nsaved\n"), (deaf, "kept\n"))
    for last, said in told:
        made = job(in_language("python3", last))
        process = made.start()
        until(lambda made=made: made.attempt().exists() and "kept" in made.printed(), "output")  # type: ignore[misc]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=BOUND) == 143
        assert (made.outcome().reason, made.outcome().cells["done"]) == ("Terminated", 0)
        first = next(c for c in made.result().cells if c.cell_type == "code")
        assert stream(first) == said


def test_a_cell_that_was_sent_and_not_begun_is_interrupted_once_it_is(job: Make) -> None:
    """It would be lost: between cells a kernel ignores interrupts."""
    busy = (
        "import pathlib, signal, time\nkernel = get_ipython().kernel\n"
        "publish = kernel._publish_execute_input\n"
        "def late(*args):\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    pathlib.Path('sent').touch()\n"
        "    while not pathlib.Path('told').exists(): time.sleep(0.02)\n"
        "    time.sleep(0.2)\n"  # in which an interrupt that comes too early is lost
        "    signal.signal(signal.SIGINT, lambda *_: interrupts.append(1))\n    publish(*args)\n"
        "kernel._publish_execute_input = late\ninterrupts = []"
    )
    waiting = "while not interrupts: time.sleep(0.02)\nprint('interrupted')"
    made = job(in_language("python3", busy, waiting))
    patient = "import job_runner.attempt.supervise as s; s._INTERRUPT_GRACE = 30.0"
    process = made.start(runner=changed_runner(patient))
    folder, lock = made.directory.parent, made.attempt() / layout.LOCK
    until((folder / "sent").exists, "a cell that was sent")
    os.utime(lock, (0, 0))
    process.send_signal(signal.SIGTERM)
    until(lambda: lock.stat().st_mtime > 0, "the signal came")
    (folder / "told").touch()
    assert process.wait(timeout=BOUND) == 143
    assert (made.outcome().reason, made.outcome().cells["done"]) == ("Terminated", 1)
    assert made.printed() == "interrupted\n"


def test_a_flood_that_is_stopped_comes_whole(job: Make) -> None:
    """Once it is interrupted no more is made, and what was made is waited for."""
    source = (
        "i = 0\nprint('kept')\n"
        "try:\n    while True:\n        i += 1\n        print(i)\n"
        "except KeyboardInterrupt:\n    print('\\nlast', i)"
    )
    made = job(in_language("python3", source))
    process = made.start()
    until(lambda: made.attempt().exists() and "kept\n1\n2\n" in made.printed(), "a flood")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=BOUND) == 143
    first = next(c for c in made.result().cells if c.cell_type == "code")
    *numbers, last = stream(first).removeprefix("kept\n").split("\n")[:-1]
    count = int(last.removeprefix("last "))
    assert count > 1000
    # The one that it was about to print may be missing, or be all that is on its line.
    assert [number for number in numbers if number][: count - 1] == [
        str(number) for number in range(1, count)
    ]
