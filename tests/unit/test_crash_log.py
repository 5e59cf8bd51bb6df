"""What is shown of the last words of a kernel's process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from job_runner.diagnosis.cell_place import CellPlace
from job_runner.diagnosis.endings import kernel_died
from job_runner.diagnosis.exit_codes import Exit
from job_runner.kernel.crash_log import cut_log, last_log_line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("one\ntwo \n\n", "two"),
        ("x" * 100_000, "x" * 300),
    ],
)
def test_the_last_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "words").write_text(text)
    assert last_log_line(tmp_path / "words") == words
    assert last_log_line(tmp_path / "none") == ""


def test_a_large_log_keeps_its_end(tmp_path: Path) -> None:
    """Whoever writes to it goes on at its new end."""
    words = tmp_path / "words"
    with words.open("ab", buffering=0) as log:
        log.write(b"one\n" * 200_000)
        cut_log(words)
        assert words.stat().st_size == 800_000
        log.write(b"one\n" * 200_000 + b"two\n")
        cut_log(words)
        assert words.stat().st_size < 20_000
        assert last_log_line(words) == "two"
        log.write(b"three\n")
        assert words.stat().st_size < 20_000
    assert words.read_bytes().endswith(b"one\ntwo\nthree\n")
    cut_log(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_crash_says_what_and_where(tmp_path: Path) -> None:
    """A real dump, of the thread that crashed and not of the one that is listed first."""
    script = tmp_path / "crash.py"
    script.write_text(
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "def work():\n"
        "    ctypes.string_at(0)\n"
        "work()\n"
    )
    with (tmp_path / "words").open("wb") as words:
        died = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(script)], stderr=words, check=False
        )
    said = last_log_line(tmp_path / "words")
    assert said.startswith("Fatal Python error: Segmentation fault in string_at (line ")
    message = str(kernel_died(died.returncode, CellPlace(9, 7), "epoch 3", said).message)
    assert "The kernel died in cell 7: a native library crashed (SIGSEGV)" in message
    assert f'said last: "{said}".' in message and 'The last output was "epoch 3".' in message
    assert "shm" not in message


@pytest.mark.parametrize("folder", ["/dev/shm", None], ids=["shared memory", "a file"])
def test_a_mapped_file_without_room(folder: str | None, tmp_path: Path) -> None:
    """A real SIGBUS, as where shared memory is full."""
    script = (
        "import mmap, sys, tempfile\n"
        "with tempfile.TemporaryFile(dir=sys.argv[1]) as file:\n"
        "    file.truncate(8192)\n"
        "    memory = mmap.mmap(file.fileno(), 8192)\n"
        "    file.truncate(0)\n"
        "    memory[0] = 1\n"
    )
    command = [sys.executable, "-c", script, folder or str(tmp_path)]
    died = subprocess.run(command, capture_output=True, check=False)
    end = kernel_died(died.returncode, CellPlace(9, 7), "epoch 3", "")
    assert (end.reason, end.exit_code) == ("KernelDied", Exit.KERNEL_DIED)
    assert end.message == (
        "The kernel died in cell 7: a file that it had mapped was cut, or had no room in /dev/shm "
        'or on its disk (SIGBUS); what was printed is kept. The last output was "epoch 3". '
        "On a cluster a flavor with more `shm` has a larger /dev/shm."
    )


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (0, "ended with exit status 0 (os._exit, or a library that does)"),
        (3, "ended with exit status 3"),
        (-6, "a native library gave up (SIGABRT)"),
        (-15, "it got SIGTERM"),
        (-99, "it got signal 99"),
        (None, "its process is gone"),
    ],
)
def test_how_it_died(status: int | None, how: str) -> None:
    assert how in str(kernel_died(status, None, "", "").message)
