"""Freezing: what is on disk at one moment, or an error that says what is wrong with it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from jupyter_to_job.domain.errors import BadInput, BadNotebook, Stale, TooLarge
from jupyter_to_job.workspace import Input, Workspace, freeze, freeze_input, summarize_notebook

from ..processes import until


def notebook(**changes: Any) -> bytes:
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [], **changes}
    return json.dumps({k: v for k, v in made.items() if v is not None}).encode()


def cell(**fields: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": "", "metadata": {}, "outputs": [], **fields}


KERNEL = {"kernelspec": {"name": "ir", "display_name": "R"}}
V3: dict[str, Any] = {
    "cells": None,
    "nbformat": 3,
    "nbformat_minor": 0,
    "worksheets": [{"cells": []}],
}


@pytest.mark.parametrize(
    ("data", "kernel"),
    [
        (notebook(), None),
        (notebook(metadata=KERNEL), "ir"),
        (notebook(metadata={"kernelspec": {}}), None),
        (notebook(metadata={"kernelspec": 5}), None),
        *((notebook(nbformat_minor=minor, cells=[cell()]), None) for minor in range(6)),
        (notebook(**V3), None),
        (notebook(cells=[cell(source="é" * 10)]), None),
    ],
)
def test_notebooks(tmp_path: Path, data: bytes, kernel: str | None) -> None:
    (tmp_path / "a.ipynb").write_bytes(data)
    frozen = freeze(Workspace(tmp_path), "a.ipynb")
    assert (frozen.data, frozen.kernel) == (data, kernel)
    assert frozen.sha256 == hashlib.sha256(data).hexdigest()
    assert frozen.inputs == ()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b'{\n "nbformat": 4,\n "cells": [}', "line 3, column 12"),
        (notebook()[:-1], "broken JSON at line 1"),
        (bytes(range(256)), "not UTF-8"),
        (b"\x89PNG\r\n", "not UTF-8"),
        (notebook().decode().encode("utf-16"), "not UTF-8"),
        (b"[" * 100_000, "no notebook"),
        (b"1" * 10_000, "no notebook"),
        (b"[]", "no nbformat"),
        (b'"text"', "no nbformat"),
        (b"{}", "no nbformat"),
        (notebook(nbformat=True), "no nbformat"),
        (notebook(nbformat="4"), "no nbformat"),
        (notebook(nbformat=5), "newer"),
        (notebook(nbformat=2), "too old"),
        (notebook(nbformat_minor=None), "no nbformat_minor"),
        (notebook(metadata=None), "no metadata"),
        (notebook(cells=None), "no cells"),
        (notebook(cells={}), "no cells"),
        (notebook(cells=[1]), r"cells\[0\]"),
        (notebook(cells=[cell(), {}]), r"cells\[1\]"),
        (notebook(nbformat=3), "no worksheets"),
    ],
)
def test_no_notebook(data: bytes, says: str) -> None:
    with pytest.raises(BadNotebook, match=says) as raised:
        summarize_notebook(data, "dir/a.ipynb")
    assert raised.value.message.startswith("dir/a.ipynb is ")


def test_not_even_a_file(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "folder.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "device.ipynb").symlink_to("/dev/zero")
    (tmp_path / "broken.ipynb").symlink_to("nothing")
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate((512 << 20) + 1)
    for name, error, says in (
        ("folder.ipynb", BadNotebook, "a folder"),
        ("pipe.ipynb", BadNotebook, "a pipe"),
        ("device.ipynb", BadInput, "out of the workspace"),
        ("broken.ipynb", BadNotebook, "No such file"),
        ("missing.ipynb", BadNotebook, "No such file"),
        ("missing/a.ipynb", BadNotebook, "No such file"),
        ("large.ipynb/a.ipynb", BadNotebook, "Not a directory"),
        ("x" * 300, BadNotebook, "too long"),
        ("large.ipynb", TooLarge, "512 MiB"),
        (".", BadNotebook, "a folder"),
        ("../a.ipynb", BadInput, "out of the workspace"),
        ("/a.ipynb", BadInput, "no path inside"),
    ):
        with pytest.raises(error, match=says):
            freeze(workspace, name)


def test_a_device_in_a_listed_folder(tmp_path: Path) -> None:
    (tmp_path / "zero.ipynb").symlink_to("/dev/zero")
    with pytest.raises(BadNotebook, match="a device"):
        freeze(Workspace(tmp_path, [Path("/dev")]), "zero.ipynb")


def test_stale(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_bytes(notebook())
    with pytest.raises(Stale, match="changed on disk"):
        freeze(Workspace(tmp_path), "a.ipynb", expected_sha256="0" * 64)


def test_caught_in_the_middle_of_a_save(tmp_path: Path) -> None:
    """The file is emptied, and a little later written: what is frozen is the whole of it."""
    path = tmp_path / "a.ipynb"
    path.touch()
    opened = []

    class Saving(Workspace):
        def open(self, name: str) -> BinaryIO:
            opened.append(name)
            if len(opened) == 2:
                path.write_bytes(notebook(metadata=KERNEL))
            return super().open(name)

    assert freeze(Saving(tmp_path), "a.ipynb").kernel == "ir"


class Writer(threading.Thread):
    """Writes to a file all the time: it begins with its length, and is never the same."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.done, self.written = path, False, 0

    def run(self) -> None:
        with self.path.open("r+b") as file:
            while not self.done:
                file.seek(0)
                file.write(b"%010d" % (self.written + 1) * 200_000)
                file.flush()
                self.written += 1
                time.sleep(0.0005)

    def wait_for_a_write(self, _: int = 0) -> None:
        """Wait until a write has begun after this call, and has ended."""
        written = self.written
        until(lambda: self.written >= written + 2, "two writes")


def frozen_input(
    path: Path, target: Path, step: Callable[[int], None] = lambda _: None
) -> tuple[bytes, str, int]:
    item = Input("dir/b", path.stat().st_size, partial(path.open, "rb"))  # type: ignore[arg-type]
    record = freeze_input(item, target, step)
    assert record.path == "dir/b"
    return target.read_bytes(), record.sha256, record.size


@pytest.mark.parametrize("size", [0, 1, 3 << 20])
def test_inputs_are_copies(tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "b", tmp_path / "copy"
    source.write_bytes(os.urandom(size))
    os.utime(source, ns=(1, 10**18))
    source.chmod(0o755)
    data, digest, length = frozen_input(source, target)
    assert data == source.read_bytes()
    assert (digest, length) == (hashlib.sha256(data).hexdigest(), size)
    status = target.stat()
    assert (status.st_mode & 0o777, status.st_mtime_ns, status.st_nlink) == (0o700, 10**18, 1)
    assert status.st_ino != source.stat().st_ino


def test_an_input_that_never_stands_still(tmp_path: Path) -> None:
    source, target = tmp_path / "b", tmp_path / "copy"
    source.write_bytes(b"0" * 2_000_000)
    writer = Writer(source)
    writer.start()
    try:
        writer.wait_for_a_write()
        with pytest.raises(Stale, match="dir/b is being written to"):
            frozen_input(source, target, writer.wait_for_a_write)
    finally:
        writer.done = True
        writer.join()
    data, digest, _ = frozen_input(source, target)
    assert hashlib.sha256(data).hexdigest() == digest
    assert data == data[:10] * 200_000


def test_an_input_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_bytes(notebook())
    (tmp_path / "b").touch()
    (item,) = freeze(Workspace(tmp_path), "a.ipynb", ["b"]).inputs
    (tmp_path / "b").unlink()
    with pytest.raises(BadInput, match="Cannot read the input b: No such file"):
        freeze_input(item, tmp_path / "copy")
