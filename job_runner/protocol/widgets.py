"""The state of ipywidgets, as notebooks keep it: without it a result shows broken progress bars."""

from __future__ import annotations

from typing import Any

_MIME = "application/vnd.jupyter.widget-state+json"


class WidgetFold:
    """The widgets' models, record by record."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, Any]] = {}
        self._buffers: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}

    @property
    def used(self) -> bool:
        """Tell whether there was a widget at all."""
        return bool(self._states)

    def feed(self, record: dict[str, Any]) -> None:
        """Take a `widget` record: what changed in one model."""
        self._states.setdefault(record["id"], {}).update(record["state"])
        known = self._buffers.setdefault(record["id"], {})
        for buffer in record.get("buffers", ()):
            known[tuple(buffer["path"])] = buffer

    def metadata(self) -> dict[str, Any]:
        """Return what stands under `widgets` in the notebook's metadata."""
        models = {
            identifier: self._model(identifier, state)
            for identifier, state in self._states.items()
            if "_model_name" in state
        }
        return {_MIME: {"state": models, "version_major": 2, "version_minor": 0}}

    def _model(self, identifier: str, state: dict[str, Any]) -> dict[str, Any]:
        model = {
            "model_name": state.get("_model_name"),
            "model_module": state.get("_model_module"),
            "model_module_version": state.get("_model_module_version"),
            "state": dict(state),
        }
        if self._buffers[identifier]:
            model["buffers"] = list(self._buffers[identifier].values())
        return model
