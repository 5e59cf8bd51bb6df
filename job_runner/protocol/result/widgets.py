"""The state of ipywidgets, as notebooks keep it: without it a result shows broken progress bars.

As JupyterLab saves it: models that were closed are gone, of a value only its last binary buffers
count, and what a cell prints while an Output widget captures is the widget's and not the cell's.
"""

from __future__ import annotations

from typing import Any

from ..journal.validation import is_output
from .outputs import MemoryOutputs, MemoryOutputStore

_MIME = "application/vnd.jupyter.widget-state+json"

Record = dict[str, Any]


class WidgetFold:
    """The widgets' models, record by record."""

    def __init__(self) -> None:
        self.shelf = MemoryOutputStore()
        self._states: dict[str, dict[str, Any]] = {}
        self._buffers: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self._captured: dict[str, MemoryOutputs] = {}
        self._given: dict[str, list[Any]] = {}
        self._capturing: dict[str, int] = {}

    @property
    def used(self) -> bool:
        """Tell whether there was a widget at all."""
        return bool(self._states)

    def feed(self, record: Record) -> None:
        """Take a `widget` record: what changed in one model."""
        identifier, changed = record["id"], record["state"]
        state = self._states.setdefault(identifier, {})
        known = self._buffers.setdefault(identifier, {})
        buffers = {tuple(buffer["path"]): buffer for buffer in record.get("buffers", ())}
        replaced = changed.keys() | {path[0] for path in buffers if path}
        for path in [path for path in known if not path or path[0] in replaced]:
            del known[path]
        for path in buffers:
            if len(path) == 1:
                state.pop(path[0], None)
        state.update(changed)
        known.update(buffers)
        if state.get("_model_name") == "OutputModel":
            self._capture(record)

    def close(self, identifier: str) -> None:
        """Forget a model: it is shown nowhere any more."""
        self._states.pop(identifier, None)
        self._buffers.pop(identifier, None)
        self._drop(identifier)
        self._given.pop(identifier, None)
        self._capturing.pop(identifier, None)

    def capturing(self, index: int) -> MemoryOutputs | None:
        """Return the widget's outputs that show what a cell prints now: the innermost one's."""
        found = [identifier for identifier, cell in self._capturing.items() if cell == index]
        return self._captured[found[-1]] if found else None

    def metadata(self) -> dict[str, Any]:
        """Return what stands under `widgets` in the notebook's metadata."""
        models = {
            identifier: self._model(identifier, state)
            for identifier, state in self._states.items()
            if "_model_name" in state
        }
        return {_MIME: {"state": models, "version_major": 2, "version_minor": 0}}

    def _capture(self, record: Record) -> None:
        """Follow what an Output widget shows, and whether it captures what its cell prints."""
        identifier, changed = record["id"], record["state"]
        if "outputs" in changed or identifier not in self._captured:
            self._set_outputs(identifier, changed.get("outputs"))
        if "msg_id" in changed:
            self._capturing.pop(identifier, None)
            if changed["msg_id"] and "i" in record:
                self._capturing[identifier] = record["i"]

    def _set_outputs(self, identifier: str, value: Any) -> None:
        """Show what the kernel says. It does not know what was captured: what it adds is added."""
        given = [output for output in value if is_output(output)] if isinstance(value, list) else []
        known = self._given.get(identifier, [])
        if identifier not in self._captured or given[: len(known)] != known:
            self._drop(identifier)
            self._captured[identifier] = MemoryOutputs([], self.shelf)
            known = []
        for output in given[len(known) :]:
            if output["output_type"] == "stream":
                self._captured[identifier].stream(output["name"], output["text"])
            else:
                self._captured[identifier].add(output, None)
        self._given[identifier] = given

    def _drop(self, identifier: str) -> None:
        """Forget what a widget shows."""
        captured = self._captured.pop(identifier, None)
        if captured is not None:
            captured.clear()

    def _model(self, identifier: str, state: dict[str, Any]) -> dict[str, Any]:
        shown = dict(state)
        if identifier in self._captured:
            self._captured[identifier].settle()
            shown |= {"outputs": self._captured[identifier].shown, "msg_id": ""}
        model = {
            "model_name": state.get("_model_name"),
            "model_module": state.get("_model_module"),
            "model_module_version": state.get("_model_module_version"),
            "state": shown,
        }
        if self._buffers[identifier]:
            model["buffers"] = list(self._buffers[identifier].values())
        return model
