"""A result without its outputs: the same notebook, with a word on what each cell lacks."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from job_runner.protocol.result.result import ResultFold
from job_runner.protocol.result.spool import Spool
from jupyter_to_job.api import without_outputs as module
from jupyter_to_job.api.without_outputs import OMITTED, without_outputs


def result(tmp_path: Path, *outputs: dict[str, Any], widgets: bool = False) -> bytes:
    """A result as the runner writes it: a cell with these outputs between two without."""
    snapshot = tmp_path / "snapshot.ipynb"
    cells = [v4.new_markdown_cell('   "outputs": ['), v4.new_code_cell("1"), v4.new_code_cell("2")]
    notebook = v4.new_notebook(cells=cells)
    snapshot.write_text(nbformat.writes(notebook))
    prepared = {"k": "prepared", "cells_total": 2, "notebook": json.loads(snapshot.read_text())}
    state = {"_model_name": "IntProgressModel", "value": 3}
    records = [
        {"t": 1.0, "k": "start", "v": 1},
        {"t": 1.0, **prepared},
        {"t": 1.0, "k": "cell_start", "i": 1},
        *({"t": 1.0, "k": "output", "i": 1, "output": output} for output in outputs),
        *([{"t": 1.0, "k": "widget", "i": 1, "id": "m", "state": state}] if widgets else []),
        {"t": 2.0, "k": "cell_end", "i": 1, "ok": True, "execution_count": 7},
    ]
    with ResultFold(snapshot, Spool.in_folder(None)) as fold:
        for record in records:
            fold.feed(record)
        return b"".join(fold.chunks())


STREAM = {"output_type": "stream", "name": "stdout", "text": 'a\n   ]\n   "outputs": [\nb'}
DISPLAY = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"text/plain": "x" * 5000, "application/json": {"outputs": [1]}},
}


@pytest.mark.parametrize("piece", [1 << 20, 7])
def test_outputs_are_counted_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(module, "_PIECE", piece if piece > 99 else 64)
    whole = result(tmp_path, STREAM, DISPLAY, widgets=True)
    bare = json.loads(without_outputs(io.BytesIO(whole)).read())
    nbformat.validate(bare)
    (output,) = bare["cells"][1]["outputs"]
    assert output["data"][OMITTED]["bytes"] > 5000
    expected = json.loads(whole)
    assert expected["metadata"].pop("widgets")
    assert bare["metadata"].pop("widgets") == {}
    expected["cells"][1]["outputs"] = [output]
    assert bare == expected


def test_a_result_without_outputs_stays_as_it_is(tmp_path: Path) -> None:
    whole = result(tmp_path)
    assert without_outputs(io.BytesIO(whole)).read() == whole
