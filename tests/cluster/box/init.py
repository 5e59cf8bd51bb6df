"""The first process of a box: lays its mounts, reaps orphans, and ends when its creator does.

Runs as pid 1 of fresh process, mount and network namespaces, outside of the test's process and
without imports of ours. Its standard input is a pipe that the creator holds: end of file, however
the creator ended, ends this process, and the kernel then ends everything else in here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

# What the programs keep at fixed paths: each box has its own, in memory, gone with it.
PRIVATE_DIRECTORIES = (
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/kubelet/device-plugins",
    "/var/log/containers",
)


def _reap(_signal: int, _frame: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return  # none left


def main(memory_directories: list[str]) -> None:
    """Mount, say `ready` on standard output, wait for the end of standard input."""
    # Mounts of the kubelet must reach containers; ours never leave the namespace: it is private.
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    for directory in (*PRIVATE_DIRECTORIES, *memory_directories):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
    signal.signal(signal.SIGCHLD, _reap)  # only now: subprocess waits for its children itself
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
