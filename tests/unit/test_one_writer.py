"""Two controllers on one exchange: the second waits, says so, and goes on after the first."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_to_job.controller import one_writer
from jupyter_to_job.controller.one_writer import only_writer

HOLDER = """
import asyncio, sys
from pathlib import Path
from jupyter_to_job.controller.one_writer import only_writer

async def hold():
    async with only_writer(Path(sys.argv[1])):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


def test_a_second_controller_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(one_writer, "RETRY_INTERVAL", 0.01)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None and first.stdout.readline() == "held\n"

        async def second() -> None:
            began = asyncio.Event()

            async def work() -> None:
                async with only_writer(tmp_path):
                    began.set()

            task = asyncio.create_task(work())
            while "this one waits" not in caplog.text:
                await asyncio.sleep(0.01)
            assert not began.is_set()
            first.send_signal(signal.SIGKILL)
            await asyncio.wait_for(task, 60)

        asyncio.run(second())
    assert caplog.text.count("this one waits") == 1
