"""A kernel's process: started before anything heavy is imported, never left behind.

Nothing here needs an event loop; `kernel` talks to what was started here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ..diagnosis.endings import RunFailed, no_kernel
from . import connection, kernelspec
from .cleanup import ATTEMPT_VARIABLE, TERMINATION_LOG, end_session, make_sockets_folder
from .connection import Connection
from .crash_log import last_log_line
from .kernelspec import KernelSpec

_REAP_TIMEOUT = 5.0
_PR_SET_PDEATHSIG = 1
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_OOM_FIRST, _OOM_MOST = 100, 1000
"""In thousandths of all memory: as if the kernel used a tenth more than it does."""
_NO_HISTORY = "--HistoryManager.hist_file=:memory:"
"""The history's database would be shared with every other kernel of this user."""
_QUIET_DEBUGGER = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
"""As papermill: else the debugger warns of itself, in some kernels in the first cell's output."""


class KernelProcess:
    """The process of one run's kernel, and the folder (0700) that we share with it.

    `mark` goes into its environment, so that its descendants are known wherever they went.
    """

    def __init__(self, name: str, mark: str) -> None:
        self.name = name
        self.folder = make_sockets_folder()
        self.connection: Connection | None = None
        self._mark = mark
        self._spec: KernelSpec | None = None
        self._words: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._manager: Any = None
        self._has_ended = False

    @property
    def spec(self) -> KernelSpec:
        """Return the kernel's specification. Raises RunFailed."""
        if self._spec is None:
            self._spec = kernelspec.find(self.name)
        return self._spec

    @property
    def language(self) -> str | None:
        """Return the language of the kernel's specification; None if it is not installed."""
        with contextlib.suppress(RunFailed):
            return self.spec.language
        return None

    @property
    def pid(self) -> int:
        """Return the process id of a started kernel; it leads a session of its own."""
        assert self._process is not None
        return self._process.pid

    def start(self, cwd: Path, env: dict[str, str]) -> None:
        """Start the kernel; it does not listen yet. Raises RunFailed."""
        spec = self.spec
        environment = {**_QUIET_DEBUGGER, **os.environ, **env, ATTEMPT_VARIABLE: self._mark}
        environment.pop(TERMINATION_LOG, None)
        self._words = (self.folder / "words").open("wb")
        how: dict[str, Any] = {
            "cwd": str(cwd),
            "stdout": self._words,
            "stderr": self._words,
            "preexec_fn": _preexec(),
        }
        try:
            if spec.is_plain:
                self._start_plain(environment, how)
            else:
                self._start_by_provisioner(environment, how)
        except Exception as error:  # whatever a provisioner may raise: the kernel did not start
            raise no_kernel(self.name, error) from error

    def _start_plain(self, environment: dict[str, str], how: dict[str, Any]) -> None:
        in_folder = self.spec.is_python_program
        self.connection = (
            connection.ipc_connection(self.folder) if in_folder else connection.tcp_connection()
        )
        file = self.folder / "kernel.json"
        self.connection.write(file, self.name)
        command = self.spec.command(file) + self._arguments()
        # Where nothing tells it of our death, ipykernel looks for its parent itself.
        environment = {**self.spec.environment(environment), "JPY_PARENT_PID": str(os.getpid())}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True, **how
        )

    def _start_by_provisioner(self, environment: dict[str, str], how: dict[str, Any]) -> None:
        from jupyter_client.manager import KernelManager

        self._manager = manager = KernelManager(kernel_name=self.name)
        manager.connection_file = str(self.folder / "kernel.json")
        if self.spec.is_python_program:
            manager.transport, manager.ip = "ipc", str(self.folder / "s")
        if manager.has_trait("transport_encryption"):
            manager.set_trait("transport_encryption", "disabled")
        try:
            manager.start_kernel(env=environment, extra_arguments=self._arguments(), **how)
            self._process = getattr(manager.provisioner, "process", None)
            if self._process is None:
                raise ValueError("it is not a process of this machine.")
        except Exception:
            if self._process is None and manager.has_kernel:
                manager.shutdown_kernel(now=True)
            raise
        self.connection = connection.from_info(dict(manager.get_connection_info()))

    def _arguments(self) -> list[str]:
        return [_NO_HISTORY] if self.spec.is_ipykernel else []

    def exit_status(self) -> int | None:
        """Return the exit status of a kernel that died: negative for a signal."""
        assert self._process is not None
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._process.poll()
        # Looking without reaping: until `end` nobody else can get the process's number.
        with contextlib.suppress(ChildProcessError):
            seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                exited = seen.si_code == os.CLD_EXITED
                return seen.si_status if exited else -seen.si_status
        return self._process.returncode

    def last_words(self) -> str:
        """Return the last line that the kernel's process wrote to its own stdout or stderr."""
        return last_log_line(self.folder / "words")

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and what it runs: its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill the kernel and all that it started."""
        self.signal(signal.SIGKILL)
        end_session(self.pid, self._mark)

    def end(self) -> None:
        """Kill and bury what still runs, and remove what is on the disk; once."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._process is not None:
            self.kill()
            # A process that hangs in a driver cannot be waited for: bounded.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_TIMEOUT)
        if self._manager is not None:
            self._manager.cleanup_resources()
        if self._words is not None:
            self._words.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _preexec() -> Callable[[], None] | None:
    """Return what a child runs before exec; None where nothing of it is known.

    It is killed when the runner is: else a kernel outlives a SIGKILLed one and keeps its GPU. And
    where memory is short it is killed before the runner, which is to tell of it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def set_order_of_deaths() -> None:
        with contextlib.suppress(OSError, ValueError):
            score = int(_OOM_SCORE.read_text())
            _OOM_SCORE.write_text(str(min(score + _OOM_FIRST, _OOM_MOST)))
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it is dead already, and no signal comes
            os._exit(1)

    return set_order_of_deaths
