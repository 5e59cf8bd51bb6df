"""Signing holds nobody up: a database of signatures on a network disk may hang for ever."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from jupyter_to_job.workspace.publishing import sign

from ..processes import until


def test_a_signature_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(path: Path) -> None:
        path.with_suffix(".begun").touch()
        while True:
            time.sleep(1)

    monkeypatch.setattr(sign, "_is_imported", True)
    monkeypatch.setattr(sign, "_sign", hang)
    notebook = tmp_path / "a.ipynb"
    notebook.write_bytes(b"{}")
    sign.sign(notebook)
    (copy,) = multiprocessing.active_children()
    until(notebook.with_suffix(".begun").exists, "the signing began")
    assert copy.is_alive()
    copy.kill()
    copy.join()
