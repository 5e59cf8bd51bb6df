"""ipywidgets and displays that change: a result shows what JupyterLab would have saved."""

from __future__ import annotations

from typing import Any

import pytest

from .jobs import Job, make_job, notebook, stream

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
CELLS = {
    "bar": "from tqdm.notebook import tqdm\nfor i in tqdm(range(50)): pass",
    "slider": "import ipywidgets as w\ns = w.IntSlider(value=3)\ndisplay(s)\ns.value = 7",
    "output": "out = w.Output()\ndisplay(out)\n"
    "with out:\n    print('inside')\n    display('shown')\nprint('outside')",
    "later": "with out:\n    print('more')\nout.append_stdout('appended\\n')\nprint('below')",
    "cleared": "from IPython.display import clear_output\no = w.Output()\ndisplay(o)\n"
    "with o:\n    print('old')\n    clear_output(wait=True)\n    print('new')\nprint('kept')",
    "closed": "c = w.IntSlider()\ndisplay(c)\nc.close()",
    "raising": "o = w.Output()\ndisplay(o)\nwith o:\n    1 / 0",
    "interact": "def f(x): print('x is', x)\nw.interact(f, x=5)\nNone",
    "image": "i = w.Image(value=b'\\x00', format='png')\ndisplay(i)\ni.value = b'\\x01'",
    "handle": "h = display('a', display_id='d')\ndisplay('other')",
    "updated": "h.display('b')\nh.update('c')",
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    job = make_job(tmp_path_factory.mktemp("exchange") / "job", notebook(*CELLS.values()))
    assert job.run() == 0
    return job


@pytest.fixture(scope="module")
def models(done: Job) -> dict[str, Any]:
    return dict(done.result().metadata.widgets[STATE].state)


@pytest.fixture(scope="module")
def cells(done: Job) -> dict[str, Any]:
    return dict(zip(CELLS, done.result().cells, strict=True))


def model(cell: Any, models: dict[str, Any]) -> Any:
    """The model of the only widget that a cell shows; its state without what is not shown."""
    (identifier,) = [o.data[VIEW].model_id for o in cell.outputs if VIEW in o.get("data", {})]
    return models[identifier]


def within(found: Any, models: dict[str, Any]) -> list[Any]:
    """The models inside of a box."""
    return [models[child.removeprefix("IPY_MODEL_")] for child in found.state.children]


def shown(outputs: Any) -> list[str]:
    return [o.get("text") or o.get("ename") or o.data["text/plain"] for o in outputs]


def test_a_progress_bar_ends_at_its_end(cells: dict[str, Any], models: dict[str, Any]) -> None:
    percent, bar, rate = within(model(cells["bar"], models), models)
    assert (percent.state.value, bar.state.value, bar.state.bar_style) == ("100%", 50, "success")
    assert "50/50" in rate.state.value


def test_the_last_value_counts(cells: dict[str, Any], models: dict[str, Any]) -> None:
    assert model(cells["slider"], models).state.value == 7
    (buffer,) = model(cells["image"], models).buffers
    assert (buffer.path, buffer.data) == (["value"], "AQ==")


def test_what_a_widget_captures_is_the_widgets(
    cells: dict[str, Any], models: dict[str, Any]
) -> None:
    outputs = model(cells["output"], models).state.outputs
    assert shown(outputs) == ["inside\n", "'shown'", "more\nappended\n"]
    assert stream(cells["output"]) == "outside\n"
    assert stream(cells["later"]) == "below\n"
    assert shown(model(cells["cleared"], models).state.outputs) == ["new\n"]
    assert stream(cells["cleared"]) == "kept\n"
    assert shown(model(cells["raising"], models).state.outputs) == ["ZeroDivisionError"]
    _, out = within(model(cells["interact"], models), models)
    assert shown(out.state.outputs) == ["x is 5\n"]
    assert all(m.state.msg_id == "" for m in models.values() if m.model_name == "OutputModel")


def test_a_closed_widget_is_gone(cells: dict[str, Any], models: dict[str, Any]) -> None:
    assert cells["closed"].outputs[0].data[VIEW].model_id not in models


def test_displays_show_their_last_update(cells: dict[str, Any]) -> None:
    assert shown(cells["handle"].outputs) == ["'c'", "'other'"]
    assert shown(cells["updated"].outputs) == ["'c'"]
