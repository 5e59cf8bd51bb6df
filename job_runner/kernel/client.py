"""A kernel as the loop sees it: asked and heard over its wire, watched without polling.

Its process was started before (`spawn`); what it says goes to whoever listens (`engine`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, Protocol

from ..diagnosis.endings import no_kernel
from .channels import KernelChannels, Message
from .process import KernelProcess
from .shutdown import ShutdownWait
from .startup_code import STARTUP_CODE

START_TIMEOUT = 60.0
"""Seconds for a kernel to answer: imports from a cold network disk take their time."""
_ASK_AGAIN = 1.0
_ASK_SOON = 0.02
"""The same for a kernel that answers, but whose output is not heard yet."""
_POLL = 0.1


class Listener(Protocol):
    """Takes what a kernel says."""

    def on_published(self, message: Message) -> None:
        """Take what came on iopub."""

    def on_reply(self, message: Message) -> None:
        """Take the answer to a request."""

    def on_pause(self) -> None:
        """Know that nothing more is at hand for now."""


class KernelClient:
    """A kernel whose process was started; `died` is set as soon as that is gone.

    Make it, and use it, where a loop runs.
    """

    def __init__(self, process: KernelProcess) -> None:
        self._process = process
        self.died = asyncio.Event()
        self.language_info: dict[str, Any] = {}
        self._greeting = _ReadyListener()
        self._listener: Listener = self._greeting
        self._wire: KernelChannels | None = None
        self._pidfd = -1
        self._poll: asyncio.TimerHandle | None = None
        self._watch()

    @property
    def pid(self) -> int:
        """Return the process id; it leads a session of its own."""
        return self._process.pid

    @property
    def broken(self) -> asyncio.Future[None]:
        """Return the future that gets the exception of a listener, or of the wire itself."""
        return self._connected.broken

    def exit_status(self) -> int | None:
        """Return the exit status of a kernel that died: negative for a signal."""
        return self._process.exit_status()

    def last_words(self) -> str:
        """Return the last line that the kernel's process wrote to its own stdout or stderr."""
        return self._process.last_words()

    @property
    def name(self) -> str:
        """Return the name that the kernel is installed as."""
        return self._process.name

    def connect(self) -> None:
        """Connect, and ask the first questions: the kernel finds them when it begins to listen."""
        assert self._process.connection is not None
        self._wire = KernelChannels(
            self._process.connection,
            publish=lambda message: self._listener.on_published(message),
            reply=lambda message: self._listener.on_reply(message),
            pause=lambda: self._listener.on_pause(),
        )
        self._greeting.asked.add(self.ask())
        if self._process.spec.is_ipykernel:
            # Requests are taken in their order: this one is done before the first cell.
            self._execute(STARTUP_CODE, silent=True)

    async def ready(self) -> None:
        """Wait until the kernel answers and its output is heard. Raises RunFailed."""
        try:
            await asyncio.wait_for(self._answer(), START_TIMEOUT)
        except asyncio.TimeoutError as error:
            message = f"no answer within {START_TIMEOUT:g} s. {self.last_words()}"
            raise no_kernel(self._process.name, message) from error

    def listen(self, listener: Listener) -> None:
        """Have `listener` take what the kernel says from now on."""
        self._listener = listener

    def execute(self, code: str) -> str:
        """Send a cell and return the message's id. Nobody answers `input()`: it raises at once."""
        return self._execute(code, silent=False)

    def ask(self) -> str:
        """Ask for the kernel's info, a question that changes nothing; return the message's id."""
        return self._connected.send("shell", "kernel_info_request", {})

    def interrupt(self) -> None:
        """Interrupt the cell that runs, in the way that the kernel wants."""
        if self._process.spec.interrupt_mode == "message":
            self._connected.send("control", "interrupt_request", {})
        else:
            self._process.signal(signal.SIGINT)

    async def close(self, *, kindly: bool, meanwhile: Callable[[], object] | None = None) -> None:
        """End the kernel and all that it started, and remove what it leaves on the disk.

        `kindly`: ask first, and wait a little. `meanwhile` is called while it goes.
        """
        try:
            parting = None
            if kindly and not self.died.is_set():
                parting = ShutdownWait(self.pid)
                self._connected.send("control", "shutdown_request", {"restart": False})
                # Now: it would look for the kernel until that is gone.
                self._connected.close(sending=True)
            else:
                self._process.kill()
            if meanwhile is not None:
                meanwhile()
            if parting is not None:
                await parting.wait(self.died)
        finally:
            self._unwatch()
            if self._wire is not None:
                self._wire.close()
            self._process.end()

    @property
    def _connected(self) -> KernelChannels:
        assert self._wire is not None
        return self._wire

    async def _answer(self) -> None:
        """Ask for the kernel's info until an answer has come, and its output is heard."""
        greeting = self._greeting
        while True:
            waits: set[asyncio.Future[Any]] = {greeting.heard, greeting.answered}
            open_ones = {future for future in waits if not future.done()}
            if not open_ones:
                break
            patience = _ASK_SOON if greeting.answered.done() else _ASK_AGAIN
            done, _ = await asyncio.wait(
                {*open_ones, self.broken}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
            if self.broken.done():
                self.broken.result()
            if not done:
                greeting.asked.add(self.ask())
        info = greeting.answered.result().get("language_info")
        self.language_info = info if isinstance(info, dict) else {}

    def _execute(self, code: str, *, silent: bool) -> str:
        content = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        return self._connected.send("shell", "execute_request", content)

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


class _ReadyListener:
    """Listens for the first signs: an answer on shell, and that iopub is subscribed.

    ipykernel 7 says so itself; of another kernel the echo of one of our questions tells.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.asked: set[str] = set()
        self.heard: asyncio.Future[None] = loop.create_future()
        self.answered: asyncio.Future[dict[str, Any]] = loop.create_future()

    def on_published(self, message: Message) -> None:
        """Take a welcome, or an echo."""
        is_sign = message.kind == "iopub_welcome" or message.parent in self.asked
        if is_sign and not self.heard.done():
            self.heard.set_result(None)

    def on_reply(self, message: Message) -> None:
        """Take the kernel's info."""
        if message.parent in self.asked and not self.answered.done():
            self.answered.set_result(message.content)

    def on_pause(self) -> None:
        """Nothing is held back."""
