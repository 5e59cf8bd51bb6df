"""The client of a running kernel: sends requests, hands on messages, notices its death.

The process was started before (see `process`); the messages go to a listener (see `engine`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any, Protocol

from ..diagnosis.endings import no_kernel
from .channels import KernelChannels, Message
from .kernelspec import is_python_program
from .process import KernelProcess
from .shutdown import process_tree, wait_for_exit
from .startup_code import STARTUP_CODE

START_TIMEOUT = 60.0
"""Seconds for a kernel to answer: imports from a cold network disk are slow."""
_INFO_INTERVAL = 1.0
"""Seconds between two info requests to a kernel that has not answered yet."""
_SUBSCRIPTION_INTERVAL = 0.02
"""The same once the kernel answers, while its iopub is not subscribed yet."""
_EXIT_POLL_INTERVAL = 0.1
_EXIT_TIMEOUT = 1.0
"""Seconds for a kernel that is ended to exit by itself, before it is killed."""


class Listener(Protocol):
    """Handles the messages of a kernel."""

    def on_published(self, message: Message) -> None:
        """Handle a message of iopub or stdin."""

    def on_reply(self, message: Message) -> None:
        """Handle the reply to a request."""

    def on_batch_end(self) -> None:
        """Handle the end of a batch: no more messages have come so far."""


class KernelClient:
    """The client of a kernel whose process was started; `died` is set once that is gone.

    Create and use it inside a running event loop. The kernel reads the first requests once it
    listens.
    """

    def __init__(self, process: KernelProcess) -> None:
        self.process = process
        self.died = asyncio.Event()
        self.language_info: dict[str, Any] = {}
        self._ready_listener = _ReadyListener()
        self._listener: Listener = self._ready_listener
        self._channels = KernelChannels(
            self.process.connection_info,
            on_published=lambda message: self._listener.on_published(message),
            on_reply=lambda message: self._listener.on_reply(message),
            on_batch_end=lambda: self._listener.on_batch_end(),
        )
        # The future that gets the exception of a listener, or of the channels.
        self.error = self._channels.error
        self._ready_listener.requests.add(self.request_info())
        if self.process.is_ipykernel:
            # A kernel handles requests in order: this code runs before the first cell.
            self._execute(STARTUP_CODE, silent=True)
        self._pidfd = -1
        self._poll: asyncio.TimerHandle | None = None
        self._watch_process()

    async def ready(self) -> None:
        """Wait until the kernel answers and its iopub is subscribed. Raises RunFailed."""
        try:
            await asyncio.wait_for(self._wait_for_info(), START_TIMEOUT)
        except asyncio.TimeoutError as error:
            message = f"no answer within {START_TIMEOUT:g} s. {self.process.last_log_line()}"
            raise no_kernel(self.process.name, message) from error

    def listen(self, listener: Listener) -> None:
        """Hand all further messages to `listener`."""
        self._listener = listener

    def execute(self, code: str) -> str:
        """Send a cell and return the message's id. `input()` raises at once: no user is there."""
        return self._execute(code, silent=False)

    def request_info(self) -> str:
        """Request the kernel's info, which changes nothing in it; return the message's id."""
        return self._channels.send("shell", "kernel_info_request", {})

    def interrupt(self) -> None:
        """Interrupt the running cell in the way that the kernel's specification names."""
        if self.process.spec.interrupt_mode == "message":
            self._channels.send("control", "interrupt_request", {})
        else:
            self.process.signal(signal.SIGINT)

    async def shutdown(
        self, *, graceful: bool, while_waiting: Callable[[], object] | None = None
    ) -> bool:
        """Shut the kernel down, or kill it with all that it started; then stop listening.

        With `graceful` the kernel is asked to exit and has a while for it: False if it did not.
        `while_waiting` is called meanwhile. The process is closed by whoever started it, outside
        the loop.
        """
        try:
            initial = None
            if graceful and not self.died.is_set():
                initial = process_tree(self.process.pid)
                self._channels.send("control", "shutdown_request", {"restart": False})
                # Closed now: the sockets would try to reconnect once the kernel is gone.
                self._channels.close(sending=True)
            else:
                if not (self.died.is_set() or is_python_program(self.process.spec)):
                    await self._request_exit()
                self.process.kill()
            if while_waiting is not None:
                while_waiting()
            return initial is None or await wait_for_exit(self.process.pid, initial, self.died)
        finally:
            self._unwatch_process()
            self._channels.close()

    async def _request_exit(self) -> None:
        """Ask the kernel to exit, and wait a moment until it is gone.

        Our process may be the client of a container. To kill it would leave the kernel running.
        """
        self._channels.send("control", "shutdown_request", {"restart": False})
        self._channels.close(sending=True)
        self.process.signal(signal.SIGTERM)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.died.wait(), _EXIT_TIMEOUT)

    async def _wait_for_info(self) -> None:
        """Request the kernel's info until a reply has come and iopub is subscribed."""
        listener = self._ready_listener
        while not (listener.subscribed.done() and listener.info.done()):
            interval = _SUBSCRIPTION_INTERVAL if listener.info.done() else _INFO_INTERVAL
            futures: list[asyncio.Future[Any]] = [listener.subscribed, listener.info, self.error]
            completed, _ = await asyncio.wait(
                [future for future in futures if not future.done()],
                timeout=interval,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self.error.done():
                self.error.result()
            if not completed:
                listener.requests.add(self.request_info())
        info = listener.info.result().get("language_info")
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
        return self._channels.send("shell", "execute_request", content)

    def _watch_process(self) -> None:
        """Set `died` when the process is gone."""
        loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):  # macOS, or a sandbox that lacks the call
            self._poll = loop.call_later(_EXIT_POLL_INTERVAL, self._poll_process)
        else:
            loop.add_reader(self._pidfd, self._on_death)

    def _poll_process(self) -> None:
        if self.process.exit_status() is not None:
            self._on_death()
        else:
            loop = asyncio.get_running_loop()
            self._poll = loop.call_later(_EXIT_POLL_INTERVAL, self._poll_process)

    def _on_death(self) -> None:
        self.died.set()
        self._unwatch_process()

    def _unwatch_process(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1


class _ReadyListener:
    """Waits for the two signs of a ready kernel: a reply on shell, and a message on iopub.

    ipykernel 7 sends `iopub_welcome` to a new subscriber. With another kernel, an iopub message
    whose parent is one of `requests` shows that the subscription works.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.requests: set[str] = set()
        self.subscribed: asyncio.Future[None] = loop.create_future()
        self.info: asyncio.Future[dict[str, Any]] = loop.create_future()

    def on_published(self, message: Message) -> None:
        """Note that iopub is subscribed."""
        is_sign = message.kind == "iopub_welcome" or message.parent in self.requests
        if is_sign and not self.subscribed.done():
            self.subscribed.set_result(None)

    def on_reply(self, message: Message) -> None:
        """Take the kernel's info."""
        if message.parent in self.requests and not self.info.done():
            self.info.set_result(message.content)

    def on_batch_end(self) -> None:
        """Do nothing: no message is held back."""
