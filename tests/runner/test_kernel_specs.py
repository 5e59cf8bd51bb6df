"""Which kernel is started: found by name, recorded at submission, or by a provisioner."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from job_runner.diagnosis.endings import RunFailed
from job_runner.kernel.kernelspec import can_use_ipc, resolve_kernel_spec

from .jobs import BOUND, Job, notebook, until
from .test_kernels import with_kernel


def install(folder: Path, name: str, **spec: Any) -> None:
    (folder / "kernels" / name).mkdir(parents=True)
    whole = {"argv": ["no-such-program", "{connection_file}"], "display_name": name, **spec}
    (folder / "kernels" / name / "kernel.json").write_text(json.dumps(whole))


def test_kernels_are_found_as_jupyter_finds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    install(first, "Mine", language="R", env={"WHERE": "${HOME}/x"}, interrupt_mode="message")
    install(second, "mine", language="other")
    install(second, "python3", language="python", argv=["python3", "{resource_dir}", "~/f"])
    monkeypatch.setenv("JUPYTER_PATH", f"{first}{os.pathsep}{second}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("mine", "MINE", "python3"):
        ours, theirs = resolve_kernel_spec(name, None), KernelSpecManager().get_kernel_spec(name)
        assert (ours.resource_dir, ours.to_dict()) == (theirs.resource_dir, theirs.to_dict())


IPYKERNEL = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]
CONDA = ["/opt/conda/bin/python", "-m", "nb_conda_kernels.runner", "/opt/conda", "/opt/env"]


@pytest.mark.parametrize(
    ("argv", "language", "expected"),
    [
        (["/usr/bin/python3", *IPYKERNEL], "python", True),
        (["python3.11", *IPYKERNEL], "", True),
        (["python", "-m", "of_our_company", "{connection_file}"], "Python", True),
        ([*CONDA, "python", *IPYKERNEL], "python", True),
        ([*CONDA, "java", "-jar", "scala.jar", "{connection_file}"], "scala", False),
        (["python", "-m", "run_kotlin_kernel", "{connection_file}"], "kotlin", False),
        (["java", "-jar", "ipykernel.jar", "{connection_file}"], "java", False),
        (["docker", "run", "image", "python", *IPYKERNEL], "python", False),
    ],
)
def test_only_a_kernel_of_python_gets_ipc_sockets(
    argv: list[str], language: str, expected: bool
) -> None:
    spec = resolve_kernel_spec("any", {"argv": argv, "language": language})
    assert can_use_ipc(spec) is expected


OTHER = """
import json, os, sys
assert json.load(open(sys.argv[1]))["transport"] == "tcp"
os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", "-f", sys.argv[1]])
"""


def test_another_language_that_python_starts_gets_ports(
    job: Callable[..., Job], tmp_path: Path
) -> None:
    """As Kotlin's kernel, whose ZeroMQ has no ipc sockets."""
    launcher = tmp_path / "run_other.py"
    launcher.write_text(OTHER)
    spec = {"argv": [sys.executable, str(launcher), "{connection_file}"], "language": "kotlin"}
    made = job(notebook("print('kept')", kernel="kotlin"), kernel_spec=spec)
    assert made.run() == 0, made.outcome().message
    assert made.printed() == "kept\n"


def test_a_recorded_specification_counts_more_than_the_name(
    job: Callable[..., Job], tmp_path: Path
) -> None:
    """What was resolved at submission runs, whatever is installed here under its name."""
    recorded = {
        "argv": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "env": {"FROM": "${BASE}/recorded"},
        "language": "python",
        "display_name": "Recorded",
        "interrupt_mode": "message",
        "metadata": {},
        "resource_dir": str(tmp_path),
        "of_a_newer_version": 1,
    }
    source = "import os; print(os.environ['FROM'])"
    made = job(notebook(source, kernel="only-recorded"), kernel_spec=recorded)
    assert made.run(BASE="/b") == 0, made.outcome().message
    assert made.printed() == "/b/recorded\n"


CONTAINER = """\
#!/bin/sh
cp "${{4%%:*}}" {folder}/connection-spec
grep -q '"transport": "tcp"' {folder}/connection-spec || exit 1
exec {python} -m ipykernel_launcher -f {folder}/connection-spec
"""
"""Has the connection file and no other file of the host, so that no socket can be made there."""


def test_a_python_kernel_in_a_container(job: Callable[..., Job], tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(CONTAINER.format(folder=tmp_path, python=sys.executable))
    docker.chmod(0o700)
    mount = ["-v", "{connection_file}:/connection-spec"]
    launcher = ["python", "-m", "ipykernel_launcher", "-f", "/connection-spec"]
    argv = [str(docker), "run", "--network=host", *mount, "image", *launcher]
    spec = {"argv": argv, "display_name": "In a container", "language": "python"}
    made = job(notebook("print('kept')", kernel="contained"), kernel_spec=spec)
    assert made.run() == 0, made.outcome().message
    assert made.printed() == "kept\n"


CLIENT = """\
#!/bin/sh
trap 'kill -INT $!' INT
trap : TERM
env -u JPY_PARENT_PID setsid {python} -m ipykernel_launcher -f "$2" &
while kill -0 $!; do wait $!; done
"""
"""As the client of a container engine: whoever kills it leaves the container running. Nor does a
container's first process end by SIGTERM.
"""


@pytest.mark.parametrize("reason", ["Terminated", "DeadlineExceeded"])
def test_a_kernel_in_a_container_ends_with_its_run(
    reason: str, job: Callable[..., Job], tmp_path: Path
) -> None:
    docker, pid = tmp_path / "docker", tmp_path / "pid"
    docker.write_text(CLIENT.format(python=sys.executable))
    docker.chmod(0o700)
    spec = {"argv": [str(docker), "run", "{connection_file}"], "language": "python"}
    source = "import os, pathlib, time\n"
    source += f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(600)"
    limit = 8 if reason == "DeadlineExceeded" else None
    made = job(notebook(source, kernel="contained"), kernel_spec=spec, max_runtime=limit)
    running = made.start()
    until(lambda: pid.exists() and pid.read_text(), "the cell runs")
    if reason == "Terminated":
        running.terminate()
    running.wait(timeout=BOUND)
    assert made.outcome().reason == reason
    kernel = int(pid.read_text())
    try:
        until(lambda: not psutil.pid_exists(kernel), "the kernel is gone", bound=10)
    finally:
        if psutil.pid_exists(kernel):
            psutil.Process(kernel).kill()


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "cannot be used"), ('{"argv": []}', "cannot be used"), (None, "no kernel of that name")],
)
def test_a_kernel_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, said: str
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    install(tmp_path, "odd" if text else "other")
    if text:
        (tmp_path / "kernels/odd/kernel.json").write_text(text)
    with pytest.raises(RunFailed, match=said):
        with_kernel(tmp_path, lambda _: asyncio.sleep(0), "odd")


PROVISIONER = """
from jupyter_client.provisioning import LocalProvisioner

class Marking(LocalProvisioner):
    async def pre_launch(self, **kwargs):
        kwargs = await super().pre_launch(**kwargs)
        kwargs["env"]["PROVISIONED_BY"] = "marking"
        return kwargs
"""
ELSEWHERE = """
import pathlib, subprocess
from jupyter_client.provisioning import KernelProvisionerBase

class Elsewhere(KernelProvisionerBase):
    started = None

    @property
    def has_process(self):
        return self.started is not None

    async def launch_kernel(self, cmd, **kwargs):
        self.started = subprocess.Popen(["sleep", "600"])
        pathlib.Path(kwargs["cwd"], "started").write_text(str(self.started.pid))
        return self.connection_info

    async def pre_launch(self, **kwargs):
        self.parent.write_connection_file()
        self.connection_info = self.parent.get_connection_info()
        return await super().pre_launch(cmd=[], **kwargs)

    async def poll(self):
        return self.started.poll() if self.started else 0

    async def wait(self):
        return self.started.wait()

    async def kill(self, restart=False):
        self.started.kill()

    async def send_signal(self, signum):
        self.started.send_signal(signum)

    terminate = kill

    async def cleanup(self, restart=False):
        pass
"""


def provisioned(folder: Path, source: str) -> dict[str, str]:
    """Install a kernel `marked` whose provisioner is a class; return the environment to run in."""
    packages = folder / "packages"
    (packages / "marking-1.dist-info").mkdir(parents=True)
    (packages / "marking.py").write_text(source)
    (packages / "marking-1.dist-info" / "METADATA").write_text("Name: marking\nVersion: 1\n")
    name = "Marking" if "class Marking" in source else "Elsewhere"
    entry = f"[jupyter_client.kernel_provisioners]\nmarking = marking:{name}\n"
    (packages / "marking-1.dist-info" / "entry_points.txt").write_text(entry)
    install(
        folder / "data",
        "marked",
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        language="python",
        metadata={"kernel_provisioner": {"provisioner_name": "marking"}},
    )
    return {"PYTHONPATH": str(packages), "JUPYTER_PATH": str(folder / "data")}


def test_a_kernel_that_is_no_process_here_is_ended(job: Callable[..., Job], tmp_path: Path) -> None:
    """A provisioner may start one anywhere; we watch processes, and leave nothing running."""
    environment = provisioned(tmp_path, ELSEWHERE)
    away = job(notebook("1", kernel="marked"))
    assert away.run(**environment) == 3
    assert "not a process of this machine" in str(away.outcome().message)
    assert not psutil.pid_exists(int((tmp_path / "started").read_text()))


def test_a_provisioner_starts_its_kernel(job: Callable[..., Job], tmp_path: Path) -> None:
    """One that somebody installed and chose for a kernel; jupyter_client does it then."""
    environment = provisioned(tmp_path, PROVISIONER)
    marked = job(notebook("import os; print(os.environ['PROVISIONED_BY'])", kernel="marked"))
    assert marked.run(**environment) == 0, marked.outcome().message
    assert marked.printed() == "marking\n"
    unknown = job(notebook("1", kernel="marked"))
    assert unknown.run(JUPYTER_PATH=str(tmp_path / "data")) == 3
    assert unknown.outcome().reason == "NoKernel"
