"""Kernels as the runner has them: found, started, heard, and seen off."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.manager import KernelManager

from job_runner.attempt import engine as engine_module
from job_runner.attempt.engine import Engine
from job_runner.diagnosis.cell_place import CellPlace
from job_runner.kernel import shutdown
from job_runner.kernel.channels import KernelChannels, Message
from job_runner.kernel.client import KernelClient
from job_runner.kernel.process import KernelProcess

from .jobs import BOUND

Record = dict[str, Any]


def cell(source: str) -> tuple[CellPlace, Record]:
    return CellPlace(0, 1), {"source": source, "metadata": {}}


def with_kernel(
    folder: Path, use: Callable[[KernelClient], Awaitable[Any]], name: str = "python3"
) -> Any:
    """Have `use` use a kernel, and end it for whatever use left of it."""
    process = KernelProcess(name, str(folder))

    async def run() -> Any:
        return await use(KernelClient(process))

    try:
        process.start(folder, {})
        return asyncio.run(run())
    finally:
        process.close()
        assert not process.folder.exists()


def test_a_death_is_noticed_without_pidfds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(_pid: int) -> int:
        raise OSError("no such call")

    monkeypatch.setattr(os, "pidfd_open", missing)

    async def die(kernel: KernelClient) -> int | None:
        os.kill(kernel.process.pid, signal.SIGSEGV)
        await asyncio.wait_for(kernel.died.wait(), 5)
        status = kernel.process.exit_status()
        await kernel.shutdown(graceful=False)
        return status

    assert with_kernel(tmp_path, die) == -signal.SIGSEGV


async def close_after(kernel: KernelClient, source: str) -> float:
    """Return the seconds that a kernel took to leave after a cell."""
    await kernel.ready()
    await Engine(kernel, lambda _: None).run([cell(source)])
    began = time.monotonic()
    await kernel.shutdown(graceful=True)
    return time.monotonic() - began


def test_a_kernel_that_does_nothing_more_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if it has a child, which does nothing either: a shell that it drives, a pool."""
    source = (
        "import atexit, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "atexit.register(time.sleep, 600)"
    )
    monkeypatch.setattr(shutdown, "_TIMEOUT", 600.0)  # only that it is idle ends the wait
    assert with_kernel(tmp_path, lambda kernel: close_after(kernel, source)) < BOUND


def test_exit_handlers_have_time_to_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with a new child counts as busy, although neither uses any CPU."""
    monkeypatch.setattr(shutdown, "_IDLE_TIMEOUT", 2.0)  # on a busy machine the kernel has pauses
    source = (
        "import atexit, subprocess, pathlib\n"
        "def upload():\n"
        "    subprocess.run(['sleep', '3'])\n"
        "    pathlib.Path('uploaded').touch()\n"
        "atexit.register(upload)"
    )
    with_kernel(tmp_path, lambda kernel: close_after(kernel, source))
    assert (tmp_path / "uploaded").exists()


def test_a_thread_that_waits_for_a_slow_disk_may_save_a_checkpoint(tmp_path: Path) -> None:
    """Such a kernel uses no CPU for a while; the sleep stands for the disk."""
    source = (
        "import os, threading, time\n"
        "def save():\n"
        "    open('draft', 'w').close()\n"
        "    time.sleep(2)\n"
        "    os.rename('draft', 'checkpoint')\n"
        "threading.Thread(target=save).start()"
    )
    with_kernel(tmp_path, lambda kernel: close_after(kernel, source))
    assert (tmp_path / "checkpoint").exists()


def test_a_kernel_s_threads_leave_without_waiting_for_each_other(tmp_path: Path) -> None:
    """Else it is killed, and loses what is written at the very end: a log that was held back."""
    source = (
        "import logging.handlers\n"
        "log = logging.handlers.MemoryHandler(100, target=logging.FileHandler('log'))\n"
        "logging.getLogger().addHandler(log)\n"
        "logging.warning('held back')\n"
        # As on a busy machine: the control thread comes to flush when the output's has just ended.
        "def disturb():\n"
        "    import threading, time\n"
        "    from ipykernel.iostream import IOPubThread\n"
        "    pipe, close = IOPubThread._event_pipe.fget, IOPubThread.close\n"
        "    def late(self):\n"
        "        if threading.current_thread().name == 'Control':\n"
        "            time.sleep(0.05)\n"
        "            vars(self._local).pop('event_pipe', None)\n"
        "        return pipe(self)\n"
        "    IOPubThread._event_pipe = property(late)\n"
        "    IOPubThread.close = lambda self: (time.sleep(0.5), close(self))\n"
        "disturb()"
    )
    with_kernel(tmp_path, lambda kernel: close_after(kernel, source))
    assert (tmp_path / "log").read_text() == "held back\n"


def test_what_a_notebook_made_is_finalized_before_its_kernel_is_gone(tmp_path: Path) -> None:
    """Also what is held by itself only, or by a module: what it holds back is written then."""
    (tmp_path / "of_the_notebook.py").write_text(
        "class Late:\n"
        "    def __init__(self, name):\n"
        "        self.name, self.itself, self.open = name, self, open\n"
        "    def __del__(self):\n"
        "        self.open(self.name, 'w').close()\n"
        "kept = Late('by a module')\n"
    )
    source = (
        "import gc, sys\n"
        "sys.path.insert(0, '')\n"
        "from of_the_notebook import Late\n"
        "named = Late('by a name')\n"
        "unnamed = Late('by itself')\n"
        "del unnamed\n"
        "collected = Late('while it ran')\n"
        "del collected\n"
        "gc.collect()\n"
    )
    with_kernel(tmp_path, lambda kernel: close_after(kernel, source))
    assert {path.name for path in tmp_path.glob("*y *")} == {
        "by a module",
        "by a name",
        "by itself",
    }
    assert (tmp_path / "while it ran").exists()


class _Forgetful:
    """A kernel whose queue lost the `idle` of a cell, and that answers the question after it."""

    def __init__(self) -> None:
        self.error: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def listen(self, engine: Engine) -> None:
        self._engine = engine

    def execute(self, code: str) -> str:
        reply = Message("execute_reply", code, {"status": "ok", "payload": []})
        output = Message("stream", code, {"name": "stdout", "text": "kept"})
        self._say(lambda: self._engine.on_reply(reply))
        self._say(lambda: self._engine.on_published(output))
        return code

    def request_info(self) -> str:
        idle = Message("status", "question", {"execution_state": "idle"})
        self._say(lambda: self._engine.on_published(idle))
        return "question"

    def _say(self, said: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(said)
        loop.call_soon(lambda: self._engine.on_batch_end())


def test_a_lost_idle_does_not_hang_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_IDLE_TIMEOUT", 0.05)
    records: list[Record] = []

    async def run() -> Any:
        engine = Engine(_Forgetful(), records.append)  # type: ignore[arg-type]
        cells = [(CellPlace(n, n + 1), {"source": s, "metadata": {}}) for n, s in enumerate("ab")]
        return await asyncio.wait_for(engine.run(cells), 10)

    assert asyncio.run(run()).reason is None
    assert [r["k"] for r in records] == ["cell_start", "output", "cell_end"] * 2


def test_output_that_comes_together_is_one_record(tmp_path: Path) -> None:
    source = "import sys\nfor i in range(20000): print(i, file=sys.stderr if i == 9999 else None)"
    records: list[Record] = []

    async def run(kernel: KernelClient) -> None:
        await kernel.ready()
        await Engine(kernel, records.append).run([cell(source)])
        await kernel.shutdown(graceful=False)

    with_kernel(tmp_path, run)
    outputs = [r["output"] for r in records if r["k"] == "output"]
    out = "".join(o["text"] for o in outputs if o["name"] == "stdout")
    assert out == "".join(f"{i}\n" for i in range(20000) if i != 9999)
    assert [o["text"] for o in outputs if o["name"] == "stderr"] == ["9999\n"]
    assert len(outputs) < 2000


class _Peer:
    """A kernel's end of the channels, in the hands of a test."""

    def __init__(self, connection: Record) -> None:
        self._context = zmq.Context()
        kinds = {"iopub": zmq.XPUB, "shell": zmq.ROUTER, "control": zmq.ROUTER}
        self.sockets = {name: self._context.socket(kind) for name, kind in kinds.items()}
        for name, socket in self.sockets.items():
            socket.setsockopt(zmq.SNDHWM, 0)
            separator = "-" if connection["transport"] == "ipc" else ":"
            port = connection[f"{name}_port"]
            socket.bind(f"{connection['transport']}://{connection['ip']}{separator}{port}")

    def wait_for_subscription(self) -> None:
        assert self.sockets["iopub"].poll(5000)
        self.sockets["iopub"].recv()

    def answer(self, key: bytes) -> None:
        """Answer one request on shell."""
        assert self.sockets["shell"].poll(5000)
        identity, *_ = self.sockets["shell"].recv_multipart()
        self.publish(key, {}, "shell", identity)

    def publish(
        self, key: bytes, content: Record, channel: str = "iopub", topic: bytes = b"topic"
    ) -> None:
        import hashlib
        import hmac

        header = {"msg_type": "stream", "msg_id": "m"}
        parts = [json.dumps(part).encode() for part in (header, {"msg_id": "p"}, {}, content)]
        signature = hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest().encode()
        self.sockets[channel].send_multipart([topic, b"<IDS|MSG>", signature, *parts])

    def close(self) -> None:
        self._context.destroy(linger=0)


def connection_info(folder: Path, transport: str) -> Record:
    """Return where a kernel would listen, as jupyter_client describes it."""
    manager = KernelManager(transport=transport, connection_file=str(folder / "kernel.json"))
    if transport == "ipc":
        manager.ip = str(folder / "s")
    manager.write_connection_file()
    return dict(manager.get_connection_info())


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_channels(tmp_path: Path, transport: str) -> None:
    """A flood comes whole, in order, and lets others have their turn; a forged message ends it."""
    there = connection_info(tmp_path, transport)
    peer = _Peer(there)
    taken: list[Message] = []
    turns = 0

    async def run() -> None:
        nonlocal turns
        wire = KernelChannels(there, taken.append, lambda _: None, lambda: None)
        await asyncio.to_thread(peer.wait_for_subscription)
        for number in range(5000):
            peer.publish(there["key"], {"text": str(number)})
        while len(taken) < 5000:
            await asyncio.sleep(0)
            turns += 1
        peer.publish(b"another key", {"text": "forged"})
        with pytest.raises(ValueError, match="not signed"):
            await asyncio.wait_for(wire.error, 5)
        wire.close()

    try:
        asyncio.run(asyncio.wait_for(run(), 30))
    finally:
        peer.close()
    assert [m.content["text"] for m in taken] == [str(n) for n in range(5000)]
    assert {m.parent for m in taken} == {"p"}
    assert turns > 20


def test_a_flood_keeps_no_answer_waiting(tmp_path: Path) -> None:
    """However much is published, an answer is heard at once: the next cell may end the flood."""
    there = connection_info(tmp_path, "ipc")
    peer = _Peer(there)
    taken: list[Message] = []
    before_answer: list[int] = []

    async def run() -> None:
        wire = KernelChannels(
            there, taken.append, lambda _: before_answer.append(len(taken)), lambda: None
        )
        await asyncio.to_thread(peer.wait_for_subscription)
        wire.send("shell", "kernel_info_request", {})
        for _ in range(20_000):
            peer.publish(there["key"], {})
        peer.answer(there["key"])
        while not before_answer:
            await asyncio.sleep(0)
        wire.close()

    try:
        asyncio.run(asyncio.wait_for(run(), 30))
    finally:
        peer.close()
    assert before_answer[0] < 15_000
