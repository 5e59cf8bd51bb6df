"""Runs commands inside of a pod's container, from outside.

`kubectl exec` does so through the API server, the kubelet, containerd and runc, which costs more
than a short command does. The containers of the box are processes of this machine, and their
namespaces can be entered at once.
"""

from __future__ import annotations

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
"""Becomes the container's user, who is no root, and then the command."""


@dataclass(frozen=True)
class Container:
    """A running container, by its first process."""

    process: psutil.Process

    @classmethod
    def of(cls, pod: Any) -> Container:
        """Find the container of `kubectl exec`. Raises `KubectlError` if it does not run."""
        first = pod["spec"]["containers"][0]["name"]
        name = pod["metadata"].get("annotations", {}).get(DEFAULT_CONTAINER, first)
        statuses = pod["status"].get("containerStatuses", [])
        for status in statuses:
            if status["name"] == name and "running" in status["state"]:
                identity = status["containerID"].rpartition("/")[2]
                for process in psutil.process_iter():
                    if _is_first_process(process.pid, identity):
                        return cls(process)
        raise KubectlError(f"{pod['metadata']['name']} does not run")

    def run(self, command: Sequence[str], timeout: float) -> str:
        """Run a command as the container's user, with its variables; return what it printed.

        `timeout` is in seconds. Raises `KubectlError` with its standard error if it fails.
        """
        pid = self.process.pid
        program = shutil.which("nsenter") or "nsenter"
        enter = (program, f"--target={pid}", *("-m", "-u", "-i", "-n", "-p", "-r", "-w"), "--")
        status = _status(pid)
        user = (status["Groups"], status["Gid"].split()[0], status["Uid"].split()[0])
        answer = subprocess.run(
            [*enter, "python3", "-I", "-S", "-c", _AS_USER, *user, *command],
            env=_variables(pid),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if answer.returncode:
            raise KubectlError(f"{answer.stderr.strip()}\nexit code {answer.returncode}")
        return answer.stdout


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
