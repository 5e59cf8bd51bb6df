"""The state of ipywidgets in a notebook's metadata: without it a result has broken progress bars.

It is as JupyterLab saves it: without closed models, and with the last binary buffers of a value.
What a cell prints while an Output widget captures belongs to the widget and not to the cell.
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
        self.store = MemoryOutputStore()
        self._states: dict[str, dict[str, Any]] = {}
        self._buffers: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self._captured: dict[str, MemoryOutputs] = {}
        self._kernel_outputs: dict[str, list[Any]] = {}
        self._capturing: dict[str, int] = {}

    @property
    def used(self) -> bool:
        """Whether there is any widget."""
        return bool(self._states)

    def feed(self, record: Record) -> None:
        """Take a `widget` record: the changes of one model."""
        identifier, changed = record["id"], record["state"]
        state = self._states.setdefault(identifier, {})
        all_buffers = self._buffers.setdefault(identifier, {})
        buffers = {tuple(buffer["path"]): buffer for buffer in record.get("buffers", ())}
        replaced = changed.keys() | {path[0] for path in buffers if path}
        for path in [path for path in all_buffers if not path or path[0] in replaced]:
            del all_buffers[path]
        for path in buffers:
            if len(path) == 1:
                state.pop(path[0], None)
        state.update(changed)
        all_buffers.update(buffers)
        if state.get("_model_name") == "OutputModel":
            self._capture(record)

    def close(self, identifier: str) -> None:
        """Forget a closed model."""
        self._states.pop(identifier, None)
        self._buffers.pop(identifier, None)
        self._drop(identifier)
        self._kernel_outputs.pop(identifier, None)
        self._capturing.pop(identifier, None)

    def capturing(self, index: int) -> MemoryOutputs | None:
        """Return the outputs of the innermost widget that captures a cell; None if none does."""
        capturing = [identifier for identifier, cell in self._capturing.items() if cell == index]
        return self._captured[capturing[-1]] if capturing else None

    def metadata(self) -> dict[str, Any]:
        """Return the value of `widgets` in the notebook's metadata."""
        models = {
            identifier: self._model(identifier, state)
            for identifier, state in self._states.items()
            if "_model_name" in state
        }
        return {_MIME: {"state": models, "version_major": 2, "version_minor": 0}}

    def _capture(self, record: Record) -> None:
        """Follow an Output widget: its outputs, and whether it captures those of its cell."""
        identifier, changed = record["id"], record["state"]
        if "outputs" in changed or identifier not in self._captured:
            self._set_outputs(identifier, changed.get("outputs"))
        if "msg_id" in changed:
            self._capturing.pop(identifier, None)
            if changed["msg_id"] and "i" in record:
                self._capturing[identifier] = record["i"]

    def _set_outputs(self, identifier: str, value: Any) -> None:
        """Set the outputs from the kernel. It does not know the captured ones, which stay."""
        outputs = (
            [output for output in value if is_output(output)] if isinstance(value, list) else []
        )
        previous = self._kernel_outputs.get(identifier, [])
        if identifier not in self._captured or outputs[: len(previous)] != previous:
            self._drop(identifier)
            self._captured[identifier] = MemoryOutputs([], self.store)
            previous = []
        for output in outputs[len(previous) :]:
            if output["output_type"] == "stream":
                self._captured[identifier].stream(output["name"], output["text"])
            else:
                self._captured[identifier].add(output, None)
        self._kernel_outputs[identifier] = outputs

    def _drop(self, identifier: str) -> None:
        """Forget the outputs of a widget."""
        captured = self._captured.pop(identifier, None)
        if captured is not None:
            captured.clear()

    def _model(self, identifier: str, state: dict[str, Any]) -> dict[str, Any]:
        model_state = dict(state)
        if identifier in self._captured:
            self._captured[identifier].flush()
            model_state |= {"outputs": self._captured[identifier].items, "msg_id": ""}
        model = {
            "model_name": state.get("_model_name"),
            "model_module": state.get("_model_module"),
            "model_module_version": state.get("_model_module_version"),
            "state": model_state,
        }
        if self._buffers[identifier]:
            model["buffers"] = list(self._buffers[identifier].values())
        return model
