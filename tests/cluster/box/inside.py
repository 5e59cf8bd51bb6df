"""Runs commands inside of a pod's container, from outside.

`kubectl exec` does so through the API server, the kubelet, containerd and runc, which costs more
than a short command does. The containers of the box are processes of this machine, and their
namespaces can be entered at once. A command has the user, the variables and the files of the
container, but not its cgroup, its seccomp profile and its bounds of capabilities.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.cluster.box.cluster import KubectlError

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_AS_USER = """\
import os, sys
groups, gid, uid, command = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
os.setgroups([int(group) for group in groups.split()])
os.setgid(int(gid))
os.setuid(int(uid))
os.execvp(command[0], command)
"""
"""Becomes the container's user, and then the command."""


@dataclass(frozen=True)
class Container:
    """A running container, by the id that its first process has on this machine."""

    pid: int

    @classmethod
    def of(cls, pod: Any) -> Container:
        """Find the container that `kubectl exec` would choose.

        Raises `KubectlError` if it does not run.
        """
        first = pod["spec"]["containers"][0]["name"]
        name = pod["metadata"].get("annotations", {}).get(DEFAULT_CONTAINER, first)
        for status in pod["status"].get("containerStatuses", []):
            if status["name"] == name and "running" in status["state"]:
                return cls(_first_process(status["containerID"].rpartition("/")[2]))
        raise KubectlError(f"{pod['metadata']['name']} does not run")

    def run(self, command: Sequence[str], timeout: float) -> str:
        """Run a command as the container's user, with its variables; return what it printed.

        `timeout` is in seconds. Raises `KubectlError` with its standard error if it fails.
        """
        # Of this machine: a name alone would be looked for in the PATH of the variables.
        program = shutil.which("nsenter") or "nsenter"
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
        enter = (program, f"--target={self.pid}", *namespaces, "--")
        try:
            status, variables = _status(self.pid), _variables(self.pid)
        except OSError as error:
            raise KubectlError(f"the container has ended: {error}") from error
        user = (status["Groups"], status["Gid"].split()[0], status["Uid"].split()[0])
        answer = subprocess.run(
            [*enter, "python3", "-I", "-S", "-c", _AS_USER, *user, *command],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if answer.returncode:
            raise KubectlError(f"{answer.stderr.strip()}\nexit code {answer.returncode}")
        return answer.stdout


@functools.cache
def _first_process(container: str) -> int:
    """Return the id of a container's process number 1. Raises `KubectlError` if there is none."""
    for pid in psutil.pids():
        if _is_first_process(pid, container):
            return pid
    raise KubectlError(f"the container {container} has no process")


def _is_first_process(pid: int, container: str) -> bool:
    """Tell whether a process is number 1 of a container."""
    try:
        return (
            container in Path(f"/proc/{pid}/cgroup").read_text()
            and _status(pid)["NSpid"].split()[-1] == "1"
        )
    except OSError:
        return False


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _variables(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.partition("=")[::2] for entry in entries if entry)
