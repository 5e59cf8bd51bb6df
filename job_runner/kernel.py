"""The kernel as a child process: started early, watched without polling, never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager

from .reasons import no_kernel

START_TIMEOUT = 60.0
STOP_TIMEOUT = 1.0
_PR_SET_PDEATHSIG = 1


class Kernel:
    """One kernel of a run; `died` is set as soon as its process is gone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.died = asyncio.Event()
        self._folder = Path(tempfile.mkdtemp(prefix="job-runner-"))  # 0700: sockets are private
        self._manager = AsyncKernelManager(kernel_name=name)
        # Sockets in a folder of our own: no port is ever taken by somebody else (papermill#511).
        self._manager.transport = "ipc"
        self._manager.ip = str(self._folder / "s")
        self._manager.connection_file = str(self._folder / "kernel.json")
        self.client: AsyncKernelClient
        self._watch: asyncio.Task[None] | None = None

    @property
    def process(self) -> Any:
        """Return the child as a Popen (None before `start`)."""
        return getattr(self._manager.provisioner, "process", None)

    async def start(self, cwd: Path, env: dict[str, str]) -> None:
        """Spawn the kernel; it is not ready yet. Raises RunFailed."""
        try:
            await self._manager.start_kernel(
                cwd=str(cwd), env={**os.environ, **env}, preexec_fn=_die_with_parent()
            )
        except Exception as error:
            raise no_kernel(self.name, error) from error
        self._watch = asyncio.create_task(self._watch_process())

    async def ready(self) -> None:
        """Connect, and wait until the kernel answers. Raises RunFailed."""
        context = zmq.asyncio.Context()
        # No high-water mark: a client that pauses would lose output silently (jupyter_client).
        context.setsockopt(zmq.RCVHWM, 0)
        self.client = self._manager.client(context=context)
        self.client.start_channels()
        try:
            await self.client.wait_for_ready(timeout=START_TIMEOUT)
        except RuntimeError as error:
            raise no_kernel(self.name, error) from error

    async def exit_status(self) -> int | None:
        """Return the exit status of a kernel that died: negative for a signal."""
        return None if self.process is None else self.process.poll()

    async def close(self) -> None:
        """End the kernel: asked first, killed after `STOP_TIMEOUT`; then nothing of it is left."""
        if self._watch is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._manager.shutdown_kernel(), STOP_TIMEOUT)
            self._kill_group()
            self._watch.cancel()
        if hasattr(self, "client"):
            self.client.stop_channels()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _kill_group(self) -> None:
        """Kill whatever the kernel started and left in its process group."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.poll()

    async def _watch_process(self) -> None:
        """Set `died` when the process is gone: by a pidfd where there are pidfds."""
        pid = self.process.pid
        if sys.platform == "linux":
            descriptor = os.pidfd_open(pid)
            loop = asyncio.get_running_loop()
            loop.add_reader(descriptor, self.died.set)
            try:
                await self.died.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        else:
            while self.process.poll() is None:
                await asyncio.sleep(0.1)
            self.died.set()


def _die_with_parent() -> Any:
    """Return what a child runs before exec so that it is killed when the runner is.

    Without it a kernel outlives a SIGKILLed runner and keeps its GPU. None where it is unknown.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return set_death_signal
