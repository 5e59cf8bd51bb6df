"""`job_runner run --input --output`, `inspect`, and `papermill --engine job_runner`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from .jobs import RUNNER, banner, code, load, notebook, stream, until

PARAMETERS = [
    ("count", "3", 3),
    ("rate", "1e3", 1000.0),
    ("flag", "true", True),
    ("python", "True", True),
    ("nothing", "null", None),
    ("none", "None", None),
    ("items", '[1, "a"]', [1, "a"]),
    ("url", "u:https://x", "u:https://x"),
    ("nan", "NaN", "NaN"),
    ("empty", "", ""),
    ("spaced", " 7", 7),
]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUNNER, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def test_two_files(tmp_path: Path) -> None:
    source = tmp_path / "in {b}.ipynb"
    source.write_text(
        notebook(
            code("count = 0", "parameters"), "import os; print(os.getcwd())", "print(repr(items))"
        )
    )
    (tmp_path / "p.json").write_text('{"count": 1, "from_file": "yes"}')
    (tmp_path / "sub").mkdir()
    given = [word for name, text, _ in PARAMETERS for word in ("-p", name, text)]
    files = ["--input", source.name, "--output", "sub/out {b}.ipynb"]
    done = run("run", *files, *given, "--parameters", "p.json", "--cwd", "sub", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    output = tmp_path / "sub" / "out {b}.ipynb"
    result = nbformat.read(output, as_version=4)
    nbformat.validate(result)
    expected = {name: value for name, _, value in PARAMETERS}
    assert result.metadata.papermill.parameters == {**expected, "from_file": "yes"}
    assert stream(result.cells[2]) == f"{tmp_path / 'sub'}\n"
    assert stream(result.cells[3]) == "[1, 'a']\n"
    assert [p.name for p in (tmp_path / "sub").iterdir()] == [output.name]
    assert output.stat().st_mode & 0o777 == source.stat().st_mode & 0o777


def test_a_failing_file(tmp_path: Path) -> None:
    (tmp_path / "in.ipynb").write_text(notebook("print('kept')", "1 / 0"))
    (tmp_path / "out.ipynb").write_text("old")
    done = run("run", "--input", "in.ipynb", "--output", "out.ipynb", cwd=tmp_path)
    assert done.returncode == 1
    assert "CellError" in done.stderr and "ZeroDivisionError" in done.stderr
    assert len(banner(nbformat.read(tmp_path / "out.ipynb", as_version=4))) == 2


def test_killed_and_finished(tmp_path: Path) -> None:
    (tmp_path / "in.ipynb").write_text(
        notebook("import time\nprint('kept', flush=True)\ntime.sleep(100)")
    )
    command = [*RUNNER, "run", "--input", "in.ipynb", "--output", "out.ipynb"]
    process = subprocess.Popen(command, cwd=tmp_path)
    job_dir = tmp_path / ".out.ipynb.job"
    segment = job_dir / "attempt-1" / "journal" / "00000001.jsonl"
    until(lambda: segment.exists() and b'"kept' in segment.read_bytes(), "output")
    assert run(*command[3:], cwd=tmp_path).returncode == 75
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    assert not (tmp_path / "out.ipynb").exists()
    assert run("finish", job_dir.name, cwd=tmp_path).returncode == 0
    result = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert "Lost" in banner(result)[0]
    assert load(job_dir / "attempt-1" / "outcome.json")["reason"] == "Lost"


def test_a_rerun_takes_up_what_was_killed(tmp_path: Path) -> None:
    """What the killed run printed is there until the next result is."""
    source = (
        "import os, time\nprint('kept', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)"
    )
    (tmp_path / "in.ipynb").write_text(notebook(source))
    command = [*RUNNER, "run", "--input", "in.ipynb", "--output", "out.ipynb"]
    segment = tmp_path / ".out.ipynb.job" / "attempt-1" / "journal" / "00000001.jsonl"
    first = subprocess.Popen(command, cwd=tmp_path)
    until(lambda: segment.exists() and b'"kept' in segment.read_bytes(), "output")
    first.kill()
    first.wait()
    second = subprocess.Popen(command, cwd=tmp_path)
    until(lambda: (tmp_path / "out.ipynb").exists(), "the killed run's result")
    killed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert "Lost" in banner(killed)[0] and stream(killed.cells[2]) == "kept\n"
    (tmp_path / "go").touch()
    assert second.wait(timeout=60) == 0
    assert banner(nbformat.read(tmp_path / "out.ipynb", as_version=4)) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["go", "in.ipynb", "out.ipynb"]


def test_killed_while_it_removed_its_job_directory(tmp_path: Path) -> None:
    """The request goes first: half a directory does not put less in the place of the result."""
    (tmp_path / "in.ipynb").write_text(notebook("print('ran')"))
    command = ["run", "--input", "in.ipynb", "--output", "out.ipynb"]
    (tmp_path / "out.ipynb").write_text("a whole result")
    half = tmp_path / ".out.ipynb.job"
    (half / "attempt-1" / "journal").mkdir(parents=True)
    assert run("finish", half.name, cwd=tmp_path).returncode == 2
    assert (tmp_path / "out.ipynb").read_text() == "a whole result"
    assert run(*command, cwd=tmp_path).returncode == 0
    assert stream(nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[0]) == "ran\n"
    assert not half.exists()


def test_names_as_long_as_they_may_be(tmp_path: Path) -> None:
    source, output = tmp_path / f"{'é' * 124}i.ipynb", tmp_path / f"{'é' * 124}o.ipynb"
    source.write_text(notebook("print('ran')"))
    done = run("run", "--input", source.name, "--output", output.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert stream(nbformat.read(output, as_version=4).cells[0]) == "ran\n"
    assert sorted(tmp_path.iterdir()) == [source, output]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--input", "missing.ipynb", "--output", "out.ipynb"],
        ["run", "--input", "in.ipynb"],
        ["run", "--input", "in.ipynb", "--output", "out.ipynb", "--parameters", "/dev/null"],
        ["run", ".", "--attempt", "0"],
        ["run", ".", "-p", "a", "1"],
        ["run", ".", "--input", "in.ipynb"],
        ["run", "--attempt", "1", "--input", "in.ipynb", "--output", "out.ipynb"],
        ["run", "--input", "in.ipynb", "--output", "out.ipynb", "-p", "a", "1e999"],
        ["finish", "."],
        ["inspect", "missing.ipynb"],
        ["dance"],
    ],
)
def test_wrong_calls(arguments: list[str], tmp_path: Path) -> None:
    assert run(*arguments, cwd=tmp_path).returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["folder", "pipe", "link", "/dev/job_runner-test.ipynb"])
def test_what_no_result_may_replace(name: str, tmp_path: Path) -> None:
    """It is said before anything runs, and leaves no job directory."""
    (tmp_path / "in.ipynb").write_text(notebook("open('ran', 'w')"))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/tty")
    before = {path: path.lstat().st_mode for path in tmp_path.iterdir()}
    done = run("run", "--input", "in.ipynb", "--output", name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path / name} is " in done.stderr
    assert {path: path.lstat().st_mode for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["link", "another user's", "file"])
def test_a_job_directory_that_is_none(kind: str, tmp_path: Path) -> None:
    """Nothing is removed in it, nor where it leads to."""
    if kind == "another user's" and os.geteuid() != 0:
        pytest.skip("needs root to make files of another user")
    (tmp_path / "in.ipynb").write_text(notebook("open('ran', 'w')"))
    theirs, job_dir = tmp_path / "theirs", tmp_path / ".out.ipynb.job"
    theirs.mkdir()
    (theirs / "request.json").write_text("kept")
    if kind == "link":
        job_dir.symlink_to(theirs)
    elif kind == "file":
        job_dir.write_text("kept")
    else:
        theirs.rename(job_dir)
        os.chown(job_dir, 65534, 65534)
    before = sorted(tmp_path.rglob("*"))
    done = run("run", "--input", "in.ipynb", "--output", "out.ipynb", cwd=tmp_path)
    assert done.returncode == 2
    assert str(job_dir) in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_result_that_nobody_wants(tmp_path: Path) -> None:
    """A link to /dev/null stays one, as /dev/null does: the exit code is all that is wanted."""
    (tmp_path / "in.ipynb").write_text(notebook("open('ran', 'w')", "1 / 0"))
    (tmp_path / "null").symlink_to(os.devnull)
    assert run("run", "--input", "in.ipynb", "--output", "null", cwd=tmp_path).returncode == 1
    assert (tmp_path / "null").is_symlink() and Path(os.devnull).is_char_device()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.ipynb", "null", "ran"]


def test_inspect(tmp_path: Path) -> None:
    cell = code("rate: float = 0.1  # how fast\nname = 'a'", "parameters")
    (tmp_path / "in {b}.ipynb").write_text(notebook(cell, "1"))
    done = run("inspect", "in {b}.ipynb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        {"name": "rate", "type": "float", "default": "0.1", "help": "how fast"},
        {"name": "name", "type": None, "default": "'a'", "help": ""},
    ]


def test_inspect_keeps_the_lines_of_a_text(tmp_path: Path) -> None:
    source = '''query = """select 1 # one
from t"""
name: str = "a\\nb"'''
    (tmp_path / "in.ipynb").write_text(notebook(code(source, "parameters")))
    done = run("inspect", "in.ipynb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {each["name"]: each["default"] for each in json.loads(done.stdout)} == {
        "query": "'select 1 # one\\nfrom t'",
        "name": '"a\\nb"',
    }


def test_papermill_engine(tmp_path: Path) -> None:
    """papermill's own command line finds the engine by its entry point."""
    (tmp_path / "in.ipynb").write_text(
        notebook(code("n = 0", "parameters"), "print(n)", "handle = display(1, display_id=True)")
    )
    papermill_command = [sys.executable, "-m", "papermill", "--engine", "job_runner"]
    options = ["--no-progress-bar", "in.ipynb", "out.ipynb", "-p", "n", "5"]
    done = subprocess.run(
        [*papermill_command, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    nbformat.validate(result)
    assert stream(result.cells[2]) == "5\n"
    assert [c.execution_count for c in result.cells] == [1, 2, 3, 4]
    assert {c.metadata.papermill.status for c in result.cells} == {"completed"}
    assert result.metadata.language_info.name == "python"


def test_papermill_engine_saves_while_a_cell_runs(tmp_path: Path) -> None:
    """A save in the middle of a cell's output, and a display that a later cell changes."""
    flow = "import time\nfor i in range(5): print(i, flush=True); time.sleep(0.3)"
    show = "handle = display('before', display_id=True)"
    source, target = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    source.write_text(notebook(f"{show}\n{flow}", "handle.update('after')"))
    papermill.execute_notebook(
        source, target, engine_name="job_runner", progress_bar=False, autosave_cell_every=1
    )
    shown, printed = nbformat.read(target, as_version=4).cells[0].outputs
    assert shown.data == {"text/plain": "'after'"}
    assert printed.text == "".join(f"{i}\n" for i in range(5))


def test_papermill_engine_raises_as_papermill_does(tmp_path: Path) -> None:
    (tmp_path / "in.ipynb").write_text(notebook("print('kept')", "1 / 0", "print('no')"))
    files = (tmp_path / "in.ipynb", tmp_path / "out.ipynb")
    with pytest.raises(papermill.PapermillExecutionError, match="ZeroDivisionError"):
        papermill.execute_notebook(*files, engine_name="job_runner", progress_bar=False)
    result = nbformat.read(files[1], as_version=4)
    assert len(banner(result)) == 2
    assert stream(result.cells[1]) == "kept\n"
    assert result.cells[3].metadata.papermill.status == "failed"


def test_papermill_engine_without_a_limit(tmp_path: Path) -> None:
    """nbclient takes -1 as none."""
    (tmp_path / "in.ipynb").write_text(notebook("import time; time.sleep(0.5)", "print('ran')"))
    files = (tmp_path / "in.ipynb", tmp_path / "out.ipynb")
    options: dict[str, Any] = {"engine_name": "job_runner", "execution_timeout": -1}
    papermill.execute_notebook(*files, **options, progress_bar=False)
    assert stream(nbformat.read(files[1], as_version=4).cells[1]) == "ran\n"
