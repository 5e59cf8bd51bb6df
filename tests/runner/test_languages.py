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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from .jobs import BOUND, RUNNER, Job, banner, stream, until
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
ENDS = {"stopped": ("Terminated", 143), "late": ("DeadlineExceeded", 5)}
ENOUGH = {"python3": 3, "bash": 3, "java": 10}
"""Seconds in which a cell has surely printed, on a loaded machine, too."""


@pytest.mark.parametrize("kernel", LONG)
@pytest.mark.parametrize("how", ENDS)
def test_a_cell_that_is_ended_is_interrupted(
    job: Make, request: pytest.FixtureRequest, data: str, kernel: str, how: str
) -> None:
    """It says itself where it was; how the run ended is our word all the same."""
    if kernel == "java":
        request.getfixturevalue("java")
    source, printed, error = LONG[kernel]
    limit = ENOUGH[kernel] if how == "late" else None
    made = job(in_language(kernel, source, "echo no"), max_runtime=limit)
    process = made.start(JUPYTER_PATH=data)
    until(lambda: made.attempt().exists() and "kept" in made.printed(), "output")
    began = time.monotonic()
    if how == "stopped":
        process.send_signal(signal.SIGTERM)
    reason, code = ENDS[how]
    assert process.wait(timeout=BOUND) == code
    assert how == "late" or time.monotonic() - began < GRACE
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
    saving = source.replace("print('well then')", "time.sleep(1)\n    print('saved')")
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
        "    pathlib.Path('sent').touch()\n    time.sleep(0.5)\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n    publish(*args)\n"
        "kernel._publish_execute_input = late"
    )
    made = job(in_language("python3", busy, "time.sleep(1)\npathlib.Path('through').touch()"))
    process = made.start()
    until((made.directory.parent / "sent").exists, "a cell that was sent")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=BOUND) == 143
    assert (made.outcome().reason, made.outcome().cells["done"]) == ("Terminated", 1)
    assert not (made.directory.parent / "through").exists()


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
