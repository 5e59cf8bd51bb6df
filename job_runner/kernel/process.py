"""A kernel's process: jupyter_client starts it, and nothing of it is left behind.

Nothing here needs an event loop; `client` talks to what was started here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from ..diagnosis.endings import RunFailed, no_kernel
from .cleanup import ATTEMPT_VARIABLE, TERMINATION_LOG, end_session, make_sockets_folder
from .crash_log import cut_log, last_log_line
from .kernelspec import ResolvedKernelSpec, can_use_ipc, is_ipykernel, resolve_kernel_spec
from .ports import reserve_ports

_REAP_TIMEOUT = 5.0
_PR_SET_PDEATHSIG = 1
_OOM_SCORE_FILE = Path("/proc/self/oom_score_adj")
_OOM_SCORE_STEP, _MAX_OOM_SCORE = 100, 1000
"""In thousandths of all memory: as if the kernel used a tenth more than it does."""
_NO_HISTORY = "--HistoryManager.hist_file=:memory:"
"""The history's database would be shared with every other kernel of this user."""
_DEFAULTS = {
    # As papermill: else the debugger warns of itself, in some kernels in the first cell's output.
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    # A cell's `!git` and `!apt-get` have a terminal: they would ask there, and nobody answers.
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Variables that a kernel gets unless somebody set them."""


class KernelProcess:
    """The process of one run's kernel, and the folder (0700) that the runner shares with it.

    `mark` goes into its environment, so that its descendants are known wherever they went.
    `recorded` is the kernel's specification if request.json has it.
    """

    def __init__(self, name: str, mark: str, recorded: dict[str, Any] | None = None) -> None:
        self.name = name
        self.folder = make_sockets_folder()
        self._mark = mark
        self._recorded = recorded
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._manager: KernelManager | None = None
        self._ports: list[socket.socket] = []
        self._is_closed = False

    @cached_property
    def spec(self) -> KernelSpec:
        """The kernel's specification. Raises RunFailed."""
        return resolve_kernel_spec(self.name, self._recorded)

    @property
    def language(self) -> str | None:
        """Return the language of the kernel's specification; None if it is not installed."""
        with contextlib.suppress(RunFailed):
            return str(self.spec.language)
        return None

    @property
    def is_ipykernel(self) -> bool:
        """Tell whether it is Python's own kernel. Raises RunFailed."""
        return is_ipykernel(self.spec)

    @property
    def pid(self) -> int:
        """Return the process id of a started kernel; it leads a session of its own."""
        assert self._process is not None
        return self._process.pid

    @property
    def connection_info(self) -> dict[str, Any]:
        """Return where a started kernel listens, as jupyter_client describes it."""
        assert self._manager is not None
        return dict(self._manager.get_connection_info())

    def start(self, cwd: Path, env: dict[str, str]) -> None:
        """Start the kernel; it does not listen yet. Raises RunFailed."""
        spec = self.spec
        environment = {**_DEFAULTS, **os.environ, **env, ATTEMPT_VARIABLE: self._mark}
        environment.pop(TERMINATION_LOG, None)
        try:
            self._log = (self.folder / "log").open("ab")  # as it is cut meanwhile
            self._manager = manager = self._make_manager(spec)
            manager.start_kernel(
                env=environment,
                extra_arguments=[_NO_HISTORY] if self.is_ipykernel else [],
                cwd=str(cwd),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                preexec_fn=_preexec(),
            )
            self._process = getattr(manager.provisioner, "process", None)
            if self._process is None:
                raise ValueError("it is not a process of this machine.")
        except Exception as error:  # whatever a provisioner may raise: the kernel did not start
            if self._process is None and self._manager is not None and self._manager.has_kernel:
                self._process = getattr(self._manager.provisioner, "process", None)
                with contextlib.suppress(Exception):  # the first error says more
                    self._manager.shutdown_kernel(now=True)
            raise no_kernel(self.name, error) from error

    def _make_manager(self, spec: KernelSpec) -> KernelManager:
        manager = KernelManager(
            kernel_name=self.name,
            kernel_spec_manager=ResolvedKernelSpec(spec),
            connection_file=str(self.folder / "kernel.json"),
        )
        if can_use_ipc(spec):
            manager.transport, manager.ip = "ipc", str(self.folder / "s")
        else:
            self._ports = reserve_ports(manager)
        if manager.has_trait("transport_encryption"):  # jupyter_client 8.9 and newer
            manager.set_trait("transport_encryption", "disabled")
        return manager

    def exit_status(self) -> int | None:
        """Return the exit status of a kernel that died: negative for a signal."""
        assert self._process is not None
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._process.poll()
        # The process is not reaped here: until `close` nobody else can get its number.
        with contextlib.suppress(ChildProcessError):
            status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if status is not None:
                has_exited = status.si_code == os.CLD_EXITED
                return status.si_status if has_exited else -status.si_status
        return self._process.returncode

    def last_log_line(self) -> str:
        """Return the last line that the kernel's process wrote to its own stdout or stderr."""
        return last_log_line(self.folder / "log")

    def limit_log(self) -> None:
        """Cut the log of the kernel's process if it is large; call it once in a while."""
        cut_log(self.folder / "log")

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and what it runs: its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill the kernel and all that it started."""
        self.signal(signal.SIGKILL)
        end_session(self.pid, self._mark, is_held=self._is_held())

    def _is_held(self) -> bool:
        """Tell whether the process was not reaped, so that nobody else can have its number."""
        with contextlib.suppress(AttributeError, ChildProcessError):  # macOS lacks the call
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return True
        return False

    def close(self) -> None:
        """Kill and reap what still runs, and remove what is on the disk; once.

        Call it where no event loop runs.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._process is not None:
            self.kill()
            # A process that hangs in a driver cannot be waited for: bounded.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_TIMEOUT)
        if self._manager is not None:
            self._manager.cleanup_resources()
        for resource in (self._log, *self._ports):
            if resource is not None:
                resource.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _preexec() -> Callable[[], None] | None:
    """Return what the kernel's process runs before exec; None elsewhere than on Linux.

    The kernel is killed when the runner is killed: else it would live on and keep its GPU. Where
    memory is short the kernel is killed before the runner, which then reports it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def set_oom_score_and_pdeathsig() -> None:
        with contextlib.suppress(OSError, ValueError):
            score = int(_OOM_SCORE_FILE.read_text())
            _OOM_SCORE_FILE.write_text(str(min(score + _OOM_SCORE_STEP, _MAX_OOM_SCORE)))
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the runner is dead already: no signal comes
            os._exit(1)

    return set_oom_score_and_pdeathsig
