"""Kernels that do not keep to the rules, and hosts that do not: the run goes on, or says why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from jupyter_client.manager import KernelManager

from job_runner.diagnosis.endings import RunFailed
from job_runner.kernel import process as process_module
from job_runner.kernel.kernelspec import resolve_kernel_spec
from job_runner.kernel.ports import reserve_ports
from job_runner.kernel.process import KernelProcess

from .jobs import BOUND, CAPTURING, RUNNER, Job, code, notebook, stream

SEND = """\
kernel = get_ipython().kernel
def send(kind, content, parent=None, **more):
    parent = parent or kernel.get_parent("shell")
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, **more)
"""
ODD = {
    "send('display_data', {'data': [1], 'metadata': {}})": "display_data",
    "send('display_data', {'data': {}, 'metadata': 'x'})": "display_data",
    "send('display_data', {'data': {}, 'metadata': {}, 'transient': 'x'})": "display_data",
    "send('update_display_data', {'metadata': [1], 'transient': {'display_id': 'u'}})": (
        "update_display_data"
    ),
    "send('comm_close', {})": "comm_close",
    "state = {'state': {}, 'buffer_paths': [5]}\n"
    "send('comm_msg', {'comm_id': 'a', 'data': state}, buffers=[b'a'])": "comm_msg",
}
BENT = {
    "send('stream', {'name': None, 'text': None})": ("stdout", ""),
    "send('stream', {'text': 'x'}, {'msg_id': [1]})": ("stdout", "x"),
    "m = kernel.session.msg('stream')\ndel m['header']['msg_type']\nsend(m, None)": None,
    "send('status', {'execution_state': 5})": None,
    # Bokeh's `push_notebook` sends texts to its own comm.
    """send('comm_msg', {'comm_id': 'a', 'data': '{"msgtype": "PATCH-DOC"}'})""": None,
    "send('comm_open', {'comm_id': 'a', 'target_name': 'b', 'data': [1]})": None,
}


def test_messages_against_the_rules_are_told_of(job: Callable[..., Job]) -> None:
    """Whatever a kernel sends, the cells after it run, and the result is valid."""
    odd = job(notebook(SEND, *(f"{source};" for source in (*ODD, *BENT)), "print('after')"))
    assert odd.run() == 0, odd.outcome().message
    told = odd.result().cells[1:]
    for cell, kind in zip(told, ODD.values(), strict=False):
        expected = f"[{kind} is not as Jupyter's protocol has it, and not kept]\n"
        assert stream(cell) == expected, cell.source
    for cell, said in zip(told[len(ODD) :], BENT.values(), strict=False):
        streams = [(o.name, o.text) for o in cell.outputs if o.output_type == "stream"]
        assert streams == ([said] if said else []), cell.source
    assert stream(told[-1]) == "after\n"
    assert not any(record["k"] == "damaged" for record in odd.records())


def test_odd_answers_are_made_valid(job: Callable[..., Job]) -> None:
    odd = job(
        notebook(
            code(  # an error that counts would fail the run
                f"{SEND}send('error', {{'ename': 'A', 'evalue': 5, 'traceback': 'a line'}})",
                "raises-exception",
            ),
            f"{SEND}send('execute_result', {{'data': {{}}, 'execution_count': '3'}})",
        )
    )
    assert odd.run() == 0
    error, shown = (cell.outputs[0] for cell in odd.result().cells)
    assert (error.ename, error.evalue, error.traceback) == ("A", "5", ["a line"])
    assert shown.execution_count is None


FLOOD = """\
import os, sys, time
log = sys.stdout.fileno()
while os.fstat(log).st_size < 2 << 20: os.write(log, b'y\\n' * (1 << 19))
while not 0 < os.fstat(log).st_size <= 1 << 20: time.sleep(0.02)  # empty: it is being cut
os.write(log, b'the last words\\n')
os._exit(3)
"""


def test_the_log_of_a_kernel_does_not_fill_the_disk(job: Callable[..., Job]) -> None:
    """All that programs of a notebook print goes there, too; the last words count."""
    made = job(notebook(FLOOD), max_runtime=20)
    assert made.start(before=CAPTURING).wait(timeout=BOUND) == 4, made.outcome().message
    assert "the last words" in str(made.outcome().message)


@pytest.mark.parametrize("place", ["/dev/full", "a reader that is gone", "closed"])
def test_a_log_that_takes_nothing_changes_no_exit_code(place: str, job: Callable[..., Job]) -> None:
    made = job(notebook("1"))
    command = [*RUNNER, "run", str(made.directory)]
    if place == "closed":
        command = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command]
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("wb") as full:
        to = full if place == "/dev/full" else writer
        ended = subprocess.run(command, stderr=to, timeout=BOUND, check=False)
    os.close(writer)
    assert ended.returncode == 0
    assert made.outcome().state == "succeeded"


def test_what_cannot_be_printed_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("1"))
    with Path("/dev/full").open("wb") as full:
        command = [*RUNNER, "inspect", str(tmp_path / "a.ipynb")]
        assert subprocess.run(command, stdout=full, timeout=BOUND, check=False).returncode == 74


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold ports")
def test_runs_that_begin_together_do_not_meet() -> None:
    """No port is given to two of them, and the kernel of each can listen there."""
    held = [holder for _ in range(50) for holder in reserve_ports(KernelManager())]
    ports = [holder.getsockname()[1] for holder in held]
    assert len(set(ports)) == 50 * 5
    context = zmq.Context()
    kernel, client = context.socket(zmq.REP), context.socket(zmq.REQ)
    kernel.bind(f"tcp://127.0.0.1:{ports[0]}")
    client.connect(f"tcp://127.0.0.1:{ports[0]}")
    client.send(b"heard")
    assert kernel.poll(5000)
    assert kernel.recv() == b"heard"
    context.destroy(linger=0)
    for holder in held:
        holder.close()


def test_no_free_port_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_port(_manager: KernelManager) -> None:
        raise OSError("no free ports")

    monkeypatch.setattr(process_module, "reserve_ports", no_port)
    recorded = {"argv": ["other-program"]}
    process = KernelProcess("other", "mark", recorded)
    with pytest.raises(RunFailed, match="no free ports"):
        process.start(tmp_path, {})
    process.close()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has a score")
def test_where_memory_is_short_the_kernel_goes_first(job: Callable[..., Job]) -> None:
    made = job(notebook("print(open('/proc/self/oom_score_adj').read())"))
    assert made.run() == 0
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert int(made.printed()) == min(own + 100, 1000)


def test_a_damaged_specification_keeps_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """traitlets quotes the wrong value in its error, and `env` may hold one."""
    folder = tmp_path / "kernels" / "odd"
    folder.mkdir(parents=True)
    folder.joinpath("kernel.json").write_text('{"argv": ["true"], "env": "TOKEN=hunter2"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for recorded in (None, {"argv": ["true"], "env": "TOKEN=hunter2"}):
        with pytest.raises(RunFailed) as caught:
            resolve_kernel_spec("odd", recorded)
        message = str(caught.value.end.message)
        assert "cannot be used (TraitError)" in message and "hunter2" not in message
