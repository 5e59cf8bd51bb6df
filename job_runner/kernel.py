"""The kernel as a child process: started early, watched without polling, never left behind."""

from __future__ import annotations

import asyncio
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

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager

from .ending import TERMINATION_LOG
from .leftovers import MARK, end_session, make_sockets_folder
from .messages import unpack
from .parting import leave
from .reasons import no_kernel

Message = dict[str, Any]

START_TIMEOUT = 60.0
"""Seconds for a kernel to answer: imports from a cold network disk take their time."""
_REAP_TIMEOUT = 5.0
_ASK_AGAIN = 0.3
_POLL = 0.1
_PR_SET_PDEATHSIG = 1
_NO_MARK_LINES = (
    "import zmq",
    "from ipykernel.kernelapp import IPKernelApp",
    "thread = IPKernelApp.instance().iopub_thread",
    # libzmq (4.2 and newer) applies it to the connection that is there, which is ours.
    "thread.schedule(lambda: thread.socket.setsockopt(zmq.SNDHWM, 0))",
)
_NO_MARK = f"exec({chr(10).join(_NO_MARK_LINES)!r}, {{}})"
"""In a namespace of its own: the user's stays empty."""
_LAST_WORDS = 500


class Kernel:
    """One kernel of a run; `died` is set as soon as its process is gone.

    `mark` goes into its environment, so that its descendants are known wherever they went.
    """

    def __init__(self, name: str, mark: str) -> None:
        self.name = name
        self.died = asyncio.Event()
        self.language_info: dict[str, Any] = {}
        self._mark = mark
        self.folder = make_sockets_folder()
        self._manager = AsyncKernelManager(kernel_name=name)
        # Sockets in a folder of our own (0700): no port is ever taken by somebody else.
        self._manager.transport = "ipc"
        self._manager.ip = str(self.folder / "s")
        self._manager.connection_file = str(self.folder / "kernel.json")
        self._words: IO[bytes] | None = None
        self._client: AsyncKernelClient | None = None
        self._process: Any = None
        self._pidfd = -1
        self._poll: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        """Return the process id of a started kernel; it leads a session of its own."""
        return int(self._process.pid)

    @property
    def language(self) -> str | None:
        """Return the language of the kernel's specification."""
        with contextlib.suppress(NoSuchKernel):
            spec = self._manager.kernel_spec
            return None if spec is None else spec.language
        return None

    @property
    def client(self) -> AsyncKernelClient:
        """Return the client of a kernel that is ready."""
        assert self._client is not None
        return self._client

    async def start(self, cwd: Path, env: dict[str, str]) -> None:
        """Spawn the kernel; it is not ready yet. Raises RunFailed."""
        environment = {**os.environ, **env, MARK: self._mark}
        environment.pop(TERMINATION_LOG, None)
        self._words = (self.folder / "words").open("wb")
        # The history database would be shared with every other kernel of this user.
        quiet = ["--HistoryManager.hist_file=:memory:"] if self._manager.ipykernel else []
        try:
            await self._manager.start_kernel(
                cwd=str(cwd),
                env=environment,
                extra_arguments=quiet,
                stdout=self._words,
                stderr=self._words,
                preexec_fn=_die_with_parent(),
            )
        except Exception as error:  # whatever a provisioner may raise: the kernel did not start
            raise no_kernel(self.name, error) from error
        self._process = getattr(self._manager.provisioner, "process", None)
        if self._process is None:
            raise no_kernel(self.name, "it is not a process of this machine.")
        self._watch()

    async def ready(self) -> None:
        """Connect, and wait until the kernel answers and its output is heard. Raises RunFailed."""
        context = zmq.asyncio.Context()
        # No high-water mark: a client that pauses would lose output silently.
        context.setsockopt(zmq.RCVHWM, 0)
        context.setsockopt(zmq.RECONNECT_IVL, 20)
        self._client = self._manager.client(context=context)
        self._client.session.unpack = unpack
        self._client.start_channels(stdin=False, hb=False)
        try:
            await asyncio.wait_for(self._answer(), START_TIMEOUT)
        except asyncio.TimeoutError as error:
            message = f"no answer within {START_TIMEOUT:g} s. {self.last_words()}"
            raise no_kernel(self.name, message) from error

    async def _answer(self) -> None:
        """Ask for the kernel's info until an answer and iopub's echo of one question are here."""
        asked: set[str] = set()
        answered = heard = False
        while not (answered and heard):
            asked.add(self.ask())
            with contextlib.suppress(asyncio.TimeoutError):
                if not answered:
                    reply = await asyncio.wait_for(self.shell(), _ASK_AGAIN)
                    self.language_info = reply["content"].get("language_info", {})
                    answered = True
                while not heard:
                    message = await asyncio.wait_for(self.iopub(), _ASK_AGAIN)
                    heard = message["parent_header"].get("msg_id") in asked
        if self._manager.ipykernel:
            await self._lift_mark()

    async def _lift_mark(self) -> None:
        """Have ipykernel keep what it publishes until we have it.

        By default it silently drops what is over 1000 messages, as soon as we are slower than it.
        """
        asked = self.client.execute(_NO_MARK, silent=True, store_history=False, allow_stdin=False)
        while (await self.shell())["parent_header"].get("msg_id") != asked:
            continue

    def execute(self, code: str) -> str:
        """Send a cell and return the message's id. Nobody answers `input()`: it raises at once."""
        message_id: str = self.client.execute(code, allow_stdin=False, stop_on_error=False)
        return message_id

    def ask(self) -> str:
        """Ask for the kernel's info, a question that changes nothing; return the message's id."""
        message_id: str = self.client.kernel_info()
        return message_id

    async def iopub(self) -> Message:
        """Return the next message that the kernel published."""
        return await self._receive(self.client.iopub_channel.socket)

    async def shell(self) -> Message:
        """Return the next reply."""
        return await self._receive(self.client.shell_channel.socket)

    async def _receive(self, socket: Any) -> Message:
        parts = await socket.recv_multipart()
        session = self.client.session
        _, frames = session.feed_identities(parts)
        message: Message = session.deserialize(frames)
        return message

    def exit_status(self) -> int | None:
        """Return the exit status of a kernel that died: negative for a signal."""
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            polled: int | None = self._process.poll()
            return polled
        # Looking without reaping: until `close` nobody else can get the process's number.
        with contextlib.suppress(ChildProcessError):
            seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                exited = seen.si_code == os.CLD_EXITED
                return seen.si_status if exited else -seen.si_status
        status: int | None = self._process.returncode
        return status

    def last_words(self) -> str:
        """Return the last line that the kernel's process wrote to its own stdout or stderr."""
        with contextlib.suppress(OSError), (self.folder / "words").open("rb") as words:
            words.seek(max(0, words.seek(0, os.SEEK_END) - _LAST_WORDS))
            lines = words.read().decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    async def close(self, *, kindly: bool) -> None:
        """End the kernel and all that it started. `kindly`: ask first, and wait a little."""
        if self._process is not None:
            if kindly and self._client is not None and not self.died.is_set():
                await leave(self.pid, self.died, ask=self._client.shutdown)
            _kill_group(self.pid)
            end_session(self.pid, self._mark)
            # A process that hangs in a driver cannot be waited for: bounded.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_TIMEOUT)
            self._unwatch()
        if self._client is not None:
            self._client.stop_channels()
            self._client.context.destroy(linger=0)
        await self._manager.cleanup_resources()
        if self._words is not None:
            self._words.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _watch(self) -> None:
        """Set `died` when the process is gone."""
        loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # macOS, or a sandbox that lacks the call
            self._poll = loop.call_later(_POLL, self._look)
        else:
            loop.add_reader(self._pidfd, self._on_death)

    def _look(self) -> None:
        if self.exit_status() is not None:
            self._on_death()
        else:
            self._poll = asyncio.get_running_loop().call_later(_POLL, self._look)

    def _on_death(self) -> None:
        self.died.set()
        self._unwatch()

    def _unwatch(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _die_with_parent() -> Callable[[], None] | None:
    """Return what a child runs before exec so that it is killed when the runner is.

    Without it a kernel outlives a SIGKILLed runner and keeps its GPU. None where it is unknown.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return set_death_signal
