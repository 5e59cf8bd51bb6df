"""A run that succeeds: everything that papermill's users expect, in one notebook."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout, liveness
from job_runner.protocol.progress import progress
from job_runner.protocol.result.result import fold_result
from job_runner.protocol.result.spool import Spool

from .jobs import BOUND, Job, code, load, make_job, notebook, stream, text, until

OTHER_USER = 65534
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
"""For `before`: root may do as its files' owner only."""
NOTEBOOK = notebook(
    text("# Title"),
    code("epochs = 1\nname = 'a'", "parameters"),
    "print(epochs, name, nested)",
    "epochs + 1",
    code("1 / 0", "raises-exception"),
    "import os, sys\nprint(os.environ['TOKEN'], os.getcwd())\nprint('err', file=sys.stderr)",
    "handle = display('before', display_id=True)",
    "handle.update('after')",
    "from IPython.display import clear_output\nprint('old')\nclear_output(wait=True)\nprint('new')",
    "   ",
    "import threading, time\n"
    "def late():\n    time.sleep(0.5)\n    print('from the thread')\n"
    "thread = threading.Thread(target=late)\nthread.start()",
    "thread.join()",
    "for i in range(20000): print(i, flush=i % 100 == 0)",
    "from comm import create_comm\n"
    "state = {'_model_name': 'FloatProgressModel', '_model_module': 'c', 'value': 1}\n"
    "bar = create_comm(target_name='jupyter.widget', comm_id='bar', data={'state': state})\n"
    "bar.send({'method': 'update', 'state': {'value': 7}, 'buffer_paths': [['b']]},"
    " buffers=[b'\\x00\\xff'])",
    text("The end"),
)
PARAMETERS = {"epochs": 5, "name": "é{b}", "nested": {"a": [1, None, True]}}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("exchange")
    job = make_job(folder / "job", NOTEBOOK, parameters=PARAMETERS, env={"TOKEN": "s3cret"})
    assert job.run(JUPYTER_TO_JOB_TERMINATION_LOG=str(folder / "summary")) == 0
    return job


@pytest.fixture(scope="module")
def cells(done: Job) -> Any:
    return done.result().cells


def test_outcome(done: Job) -> None:
    outcome = done.outcome()
    assert (outcome.state, outcome.reason, outcome.message) == ("succeeded", None, None)
    assert outcome.exit_code == 0
    assert outcome.cells == {"done": 12, "total": 12}
    result = (done.attempt() / layout.RESULT).read_bytes()
    assert outcome.result_sha256 == hashlib.sha256(result).hexdigest()
    with fold_result(done.directory, done.attempt(), Spool.in_memory()) as again:
        assert b"".join(again.chunks()) == result
    moment = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
    assert outcome.started is not None
    assert moment.fullmatch(outcome.started) and moment.fullmatch(outcome.finished)
    assert outcome.usage["memory_peak"] > 1 << 20
    assert outcome.usage["gpu_memory_peak"] is None


def test_parameters_are_injected_as_papermill_does(done: Job, cells: Any) -> None:
    assert cells[2].metadata.tags == ["injected-parameters"]
    assert stream(cells[3]) == "5 é{b} {'a': [1, None, True]}\n"
    assert done.result().metadata.papermill.parameters == PARAMETERS


def test_outputs(cells: Any) -> None:
    assert cells[4].outputs[0].data["text/plain"] == "6"
    assert cells[4].execution_count == cells[4].outputs[0].execution_count == 4
    assert cells[5].outputs[0].ename == "ZeroDivisionError"
    assert [o.name for o in cells[6].outputs] == ["stdout", "stderr"]
    assert cells[7].outputs[0].data["text/plain"] == "'after'"
    assert cells[8].outputs == []
    assert stream(cells[9]) == "new\n"
    assert cells[10].execution_count is None
    # Which of the two it belongs to is the kernel's word; lost it is not.
    assert stream(cells[11]) + stream(cells[12]) == "from the thread\n"
    assert stream(cells[13]) == "".join(f"{i}\n" for i in range(20000))
    assert len(cells[13].outputs) == 1


def test_widgets_are_shown_as_they_ended(done: Job) -> None:
    kept = done.result().metadata.widgets["application/vnd.jupyter.widget-state+json"]
    assert kept.state.bar.model_name == "FloatProgressModel"
    assert kept.state.bar.state["value"] == 7
    assert kept.state.bar.buffers == [{"path": ["b"], "encoding": "base64", "data": "AP8="}]


def test_the_kernel_has_the_jobs_env_and_folder(done: Job, cells: Any) -> None:
    assert cells[6].outputs[0].text == f"s3cret {done.directory.parent}\n"


def test_env_stays_in_the_request(done: Job) -> None:
    inside = [p for p in done.attempt().rglob("*") if p.is_file() and p.name != layout.RESULT]
    printed = {p.parent.name for p in inside if b"s3cret" in p.read_bytes()}
    assert printed == {layout.JOURNAL}  # the notebook printed it itself


def test_papermills_metadata(done: Job, cells: Any) -> None:
    seen = done.result().metadata.papermill
    assert seen.exception is None and seen.duration > 0 and seen.version
    assert seen.input_path == "folder/train.ipynb"
    assert all(c.metadata.papermill.status == "completed" for c in cells)
    assert all(c.metadata.papermill.exception is False for c in cells)
    assert cells[11].metadata.papermill.duration > 0


def test_files_are_private(done: Job) -> None:
    for path in done.attempt().rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_nothing_is_left(done: Job) -> None:
    assert not liveness.is_alive(done.attempt())
    assert not Path(done.records()[0]["sockets"]).exists()
    assert {p.name for p in done.attempt().iterdir()} == {
        layout.LOCK,
        layout.RUNNER,
        layout.JOURNAL,
        layout.OUTCOME,
        layout.RESULT,
    }


def test_any_moment_of_the_journal_had_a_progress(done: Job) -> None:
    records = done.records()
    start = next(i for i, r in enumerate(records) if r["k"] == "cell_start" and r["i"] == 3)
    seen = progress(records[: start + 1])
    assert (seen.cells_done, seen.cells_total, seen.current_cell) == (1, 12, 2)


def test_termination_summary(done: Job) -> None:
    summary = load(done.directory.parent / "summary")
    assert (summary["state"], summary["exit_code"]) == ("succeeded", 0)


def test_an_attempt_that_exists_is_not_touched(done: Job) -> None:
    before = {p: p.stat().st_mtime_ns for p in done.attempt().rglob("*")}
    assert done.run("--attempt", "1") == 75
    assert {p: p.stat().st_mtime_ns for p in done.attempt().rglob("*")} == before


def test_isolated(job: Callable[..., Job], tmp_path: Path) -> None:
    isolated = job(
        notebook(
            "open('../data/in.txt').read()",
            "open('../data/in.txt', 'a').write('more')\nopen('made.txt', 'w').write('made')",
            "import os; os.symlink('/etc/hostname', 'link'); os.symlink('../data', 'latest')",
            "print(os.path.exists('same.txt'))",
            kernel=None,
        ),
        isolated=True,
    )
    for name in ("data/in.txt", "folder/same.txt"):
        path = isolated.directory / layout.INPUTS / name
        path.parent.mkdir(parents=True)
        path.write_text(name)
    assert isolated.run() == 0
    artifacts = isolated.attempt() / layout.ARTIFACTS
    files = {p.relative_to(artifacts): p.read_text() for p in artifacts.rglob("*") if p.is_file()}
    assert files == {Path("data/in.txt"): "data/in.txtmore", Path("folder/made.txt"): "made"}
    assert not (isolated.attempt() / "work").exists()
    assert (isolated.directory / layout.INPUTS / "data/in.txt").read_text() == "data/in.txt"
    message = isolated.outcome().message
    assert message == "Symbolic links are not delivered: folder/link, folder/latest."


def test_a_read_only_folder_comes_back_too(job: Callable[..., Job]) -> None:
    """As caches of packages are; not even their owner may take anything out of them."""
    isolated = job(
        notebook(
            "import os; os.makedirs('cache/a'); open('cache/a/made.txt', 'w').write('made')",
            "os.chmod('cache/a', 0o500); os.chmod('cache', 0o500); os.chmod('.', 0o500)",
        ),
        isolated=True,
    )
    assert isolated.start(before=POWERLESS).wait(timeout=BOUND) == 0
    artifacts = isolated.attempt() / layout.ARTIFACTS
    assert (artifacts / "folder/cache/a/made.txt").read_text() == "made"
    assert not (isolated.attempt() / "work").exists()


@contextlib.contextmanager
def dead_mount(folder: Path) -> Iterator[bool]:
    """Mount what a program that is gone has mounted, if this machine can; tell whether."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        yield False
        return
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    mount = ["mount", "-i", "-t", "fuse", "-o", options, "dead", str(folder)]
    is_mounted = subprocess.run(mount, pass_fds=[server], check=False).returncode == 0
    os.close(server)
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make files of another user")
@pytest.mark.parametrize("is_killed", [False, True])
def test_what_another_user_made_keeps_nothing_else(
    job: Callable[..., Job], is_killed: bool
) -> None:
    """As a container does that runs as root; and a mount was left."""
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)"
    run = job(notebook("print(open('mine.pt', 'w').write('mine'))", wait), isolated=True)
    runner = run.start(before=POWERLESS)
    folder = run.attempt() / "work" / "folder"
    until(lambda: (folder / "mine.pt").exists() and run.printed(), "the run's own file")
    for name, mode in (("out/a.csv", 0o644), ("hidden/b.csv", 0o644), ("c.csv", 0o600)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("theirs")
        (folder / name).chmod(mode)
    (folder / "hidden").chmod(0o700)
    for path in ("out/a.csv", "out", "hidden", "c.csv"):
        os.chown(folder / path, OTHER_USER, OTHER_USER)
    (folder / "mount").mkdir()
    with dead_mount(folder / "mount") as is_mounted:
        if is_killed:
            runner.kill()
            runner.wait(timeout=BOUND)
            assert run.finish(before=POWERLESS) == 0
        else:
            (folder / "go").touch()
            assert runner.wait(timeout=BOUND) == 0
    outcome = run.outcome()
    assert outcome.reason == ("Lost" if is_killed else None)
    taken = {record.path for record in outcome.artifacts or ()}
    assert taken - {"folder/go"} == {"folder/mine.pt"}
    assert (run.attempt() / layout.ARTIFACTS / "folder" / "mine.pt").read_text() == "mine"
    said, _, names = (outcome.message or "").rstrip(".").partition(" Left there: ")
    assert said.endswith("could be taken out of attempt-1/work.")
    left = {f"folder/{name}" for name in ("out/a.csv", "hidden", "c.csv")}
    assert set(names.split(", ")) == left | ({"folder/mount"} if is_mounted else set())
    assert (folder / "out" / "a.csv").read_text() == "theirs"
    assert not list(run.attempt().glob("work/**/*.ipynb"))  # no copy of what is elsewhere


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_a_mount_of_a_live_run_is_left_alone(job: Callable[..., Job]) -> None:
    """Its files may be many and far away, or none that a disk has: sysfs syncs none."""
    source = (
        "import os, subprocess\nos.mkdir('mount')\n"
        "subprocess.run(['mount', '-t', 'sysfs', 'none', 'mount'], check=True)\n"
        "print(open('mine.pt', 'w').write('mine'))"
    )
    tried = ["unshare", "--mount", "sh", "-c", "mount -t sysfs none /mnt"]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False).returncode:
        pytest.skip("this machine lets nobody mount sysfs")
    run = job(notebook(source), isolated=True)
    exit_code = run.start(before=("unshare", "--mount")).wait(timeout=BOUND)
    outcome = run.outcome()
    assert (exit_code, outcome.state) == (0, "succeeded"), outcome.message
    assert [record.path for record in outcome.artifacts or ()] == ["folder/mine.pt"]
    assert (outcome.message or "").endswith(" Left there: folder/mount.")


def test_a_mount_in_the_scratch_folder_is_not_emptied(job: Callable[..., Job]) -> None:
    run = job(notebook("1"))
    claim = liveness.claim_attempt(run.directory, 1)
    claim.release()
    disk = claim.directory / "work" / "disk"
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting takes root")
    try:
        (disk / "theirs.csv").touch()
        assert run.finish() == 0
        assert (disk / "theirs.csv").exists()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
    assert (run.outcome().message or "").endswith(" Left there: disk.")


def test_a_scratch_folder_that_leads_elsewhere_is_left_alone(
    job: Callable[..., Job], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mine.txt").touch()
    source = (
        "import os, shutil; work = os.path.dirname(os.getcwd())\n"
        "assert work.endswith('/attempt-1/work')\n"
        f"shutil.rmtree(work); os.symlink({str(tmp_path / 'home')!r}, work)"
    )
    isolated = job(notebook(source), isolated=True)
    assert isolated.run() == 0
    assert (tmp_path / "home" / "mine.txt").exists()
    assert not (isolated.attempt() / layout.ARTIFACTS).exists()


def test_old_notebooks_are_upgraded(job: Callable[..., Job]) -> None:
    import nbformat

    made = nbformat.v3.new_notebook(
        worksheets=[nbformat.v3.new_worksheet(cells=[nbformat.v3.new_code_cell("print(x)")])]
    )
    old = job(nbformat.v3.writes_json(made), parameters={"x": 3})
    assert old.run() == 0
    assert stream(old.result().cells[1]) == "3\n"


@pytest.mark.parametrize("kernel", ["python3", "no-such-kernel"])
def test_ids_that_nbformat_forbids_are_replaced(kernel: str, job: Callable[..., Job]) -> None:
    """As VS Code writes them, among others. A result is valid all the same."""
    sent = json.loads(notebook(*("print('kept')" for _ in range(6)), kernel=kernel))
    ids: list[Any] = ["#VSC-a3f03ea0", "dotted.id", "long" * 20, "", 5, "good"]
    for cell, identifier in zip(sent["cells"], ids, strict=True):
        cell["id"] = identifier
    made = job(json.dumps(sent))
    assert made.run() == (0 if kernel == "python3" else 3)
    cells = [cell for cell in made.result().cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells] == ["print('kept')"] * 6
    assert len({cell.id for cell in cells}) == 6 and cells[-1].id == "good"
    assert not any(record["k"] == "damaged" for record in made.records())


@pytest.mark.parametrize(
    "fault",
    [{"cell_type": "heading", "level": 1}, {"source": {"a": "b"}}, {"source": None}],
)
def test_cells_that_no_notebook_may_have(fault: dict[str, Any], job: Callable[..., Job]) -> None:
    sent = json.loads(notebook("print('first')", "print('second')"))
    sent["cells"][1].update(fault)
    made = job(json.dumps(sent))
    assert made.run() == 2
    assert made.outcome().reason == "BadNotebook"
    made.result()


def test_half_a_character_is_refused(job: Callable[..., Job]) -> None:
    """ipykernel never replies to such a cell, so the run would wait for ever."""
    sent = json.loads(notebook("1", "print('kept')  # X"))
    sent["cells"][1]["source"] = "print('kept')  # \ud83d"
    made = job(json.dumps(sent))
    assert made.start().wait(timeout=BOUND) == 2
    assert made.outcome().reason == "BadNotebook"
    assert "ell 2 holds half of a character, '\\ud83d'" in str(made.outcome().message)


def test_programs_of_a_notebook_are_told_not_to_ask(job: Callable[..., Job]) -> None:
    """They have a terminal, where nobody would answer. What somebody has set stays."""
    source = "!echo $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND"
    made = job(notebook(source), env={"DEBIAN_FRONTEND": "readline"})
    assert made.run() == 0
    assert made.printed().split() == ["0", "readline"]
