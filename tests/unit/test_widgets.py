"""What a result keeps of ipywidgets: what JupyterLab would have saved."""

from __future__ import annotations

import tracemalloc
from typing import Any

from job_runner.protocol.result.fold import NotebookFold
from job_runner.protocol.result.outputs import MemoryOutputStore

from .folds import fold

STATE = "application/vnd.jupyter.widget-state+json"


def widget(identifier: str, state: dict[str, Any], *buffers: list[Any]) -> dict[str, Any]:
    record = {"k": "widget", "i": 0, "id": identifier, "state": state}
    kept = [
        {"path": path, "encoding": "base64", "data": "+".join(map(str, path))} for path in buffers
    ]
    return {**record, "buffers": kept} if kept else record


def open_widget(identifier: str, model: str = "Model") -> dict[str, Any]:
    return widget(identifier, {"_model_name": model, "_model_module": "m", "msg_id": ""})


def stream(text: str, index: int = 0) -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return {"k": "output", "i": index, "output": output}


def display(text: str, **more: Any) -> dict[str, Any]:
    output = {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}
    return {"k": "output", "i": 0, "output": output, **more}


def models(*records: dict[str, Any]) -> Any:
    notebook = fold({"nbformat": 4}, records)
    return notebook.metadata.widgets[STATE].state


def texts(outputs: Any) -> list[str]:
    return [o.get("text") or o.data["text/plain"] for o in outputs]


def test_of_a_value_only_its_last_buffers_count() -> None:
    first = widget("a", {"v": {"n": 1}}, ["v", "x"], ["v", "y"], ["w"])
    assert len(models(open_widget("a"), first)["a"].buffers) == 3
    kept = models(open_widget("a"), first, widget("a", {"v": {"n": 2}}, ["v", "y"]))["a"]
    assert [b.path for b in kept.buffers] == [["w"], ["v", "y"]]
    assert kept.state["v"] == {"n": 2}
    none = models(open_widget("a"), first, widget("a", {"v": None, "w": 5}))["a"]
    assert "buffers" not in none and none.state["w"] == 5
    binary = models(open_widget("a"), widget("a", {"w": 5}), widget("a", {}, ["w"]))["a"]
    assert "w" not in binary.state and [b.path for b in binary.buffers] == [["w"]]


def test_what_was_closed_is_gone() -> None:
    assert list(models(open_widget("a"), open_widget("b"), {"k": "widget_close", "id": "a"})) == [
        "b"
    ]


def test_the_innermost_widget_captures() -> None:
    notebook = fold(
        {"nbformat": 4},
        [
            open_widget("a", "OutputModel"),
            open_widget("b", "OutputModel"),
            widget("a", {"msg_id": "x"}),
            stream("in a\n"),
            stream("another cell's\n", index=1),
            widget("b", {"msg_id": "x"}),
            stream("in b\n"),
            widget("b", {"msg_id": ""}),
            stream("in a again\n"),
            widget("a", {"msg_id": ""}),
            stream("below\n"),
        ],
    )
    state = notebook.metadata.widgets[STATE].state
    assert texts(state["a"].state.outputs) == ["in a\nin a again\n"]
    assert texts(state["b"].state.outputs) == ["in b\n"]
    below = [text for cell in notebook.cells for text in texts(cell.outputs)]
    assert below == ["another cell's\n", "below\n"]


def test_clearing_and_updating_inside_of_a_widget() -> None:
    update = {"k": "update_display", "display_id": "d", "metadata": {}}
    outputs = models(
        open_widget("a", "OutputModel"),
        widget("a", {"msg_id": "x"}),
        stream("old"),
        {"k": "clear", "i": 0, "wait": True},
        stream("10%\r20%"),
        display("1", display_id="d"),
        {**update, "data": {"text/plain": "2"}},
    )["a"].state.outputs
    assert texts(outputs) == ["20%", "2"]


def test_what_the_kernel_appends_is_added_and_what_it_sets_is_set() -> None:
    one = {"output_type": "stream", "name": "stdout", "text": "1"}
    two = {"output_type": "stream", "name": "stderr", "text": "2"}
    captured = [open_widget("a", "OutputModel"), widget("a", {"msg_id": "x"}), stream("said ")]
    appended = [widget("a", {"outputs": [one]}), widget("a", {"outputs": [one, two]})]
    assert texts(models(*captured, *appended)["a"].state.outputs) == ["said 1", "2"]
    replaced = models(*captured, *appended, widget("a", {"outputs": [two, {"no": "output"}]}))
    assert texts(replaced["a"].state.outputs) == ["2"]


def test_a_widget_that_is_no_widget() -> None:
    assert dict(models(widget("a", {"value": 1}))) == {}


def test_what_is_not_shown_any_more_is_not_in_memory() -> None:
    """A loop that clears and shows in an Output widget, as live plots do."""
    notebook: dict[str, Any] = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    run = NotebookFold(lambda: notebook, MemoryOutputStore())
    for record in (open_widget("a", "OutputModel"), widget("a", {"msg_id": "x"})):
        run.feed(record)
    tracemalloc.start()
    try:
        for number in range(1000):
            run.feed({"k": "clear", "i": 0, "wait": bool(number % 2)})
            run.feed(display(str(number) * 1000, display_id=f"d{number}"))
            if number % 100 == 50:
                run.feed(widget("a", {"outputs": []}))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    state = run.result()["metadata"]["widgets"][STATE]["state"]["a"]["state"]
    assert [output["data"]["text/plain"] for output in state["outputs"]] == ["999" * 1000]
    assert held < 200_000
