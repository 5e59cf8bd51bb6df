"""Where the fold puts the outputs of cells: its interface, and a store of objects in memory.

papermill has its notebook in memory, and so does an Output widget what it captured. The outputs of
a result are in a spool (`spooled_outputs`), by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .carriage_return import apply_overwrites

Output = dict[str, Any]


class Outputs(Protocol):
    """The outputs of one cell."""

    def stream(self, name: str, text: str) -> None:
        """Add a piece of a stream. It continues the last output if that is of the same stream."""

    def add(self, output: Output, display_id: str | None) -> None:
        """Add an output that is no stream."""

    def clear(self) -> None:
        """Remove all outputs."""

    def flush(self) -> None:
        """Complete what is pending, because no output comes for a while."""


class OutputStore(Protocol):
    """Stores the outputs of a notebook."""

    def outputs(self, cell: dict[str, Any]) -> Outputs:
        """Return the outputs of a cell that has none yet."""

    def update(self, display_id: str, content: Output) -> None:
        """Change `data` and `metadata` wherever a display is shown."""


class MemoryOutputStore:
    """Outputs as objects in memory, which `node` makes of dictionaries."""

    def __init__(self, node: Callable[[Output], Output] = dict) -> None:
        self.node = node
        self._displays: dict[str, list[Output]] = {}

    def outputs(self, cell: dict[str, Any]) -> MemoryOutputs:
        """See OutputStore."""
        return MemoryOutputs(cell["outputs"], self)

    def update(self, display_id: str, content: Output) -> None:
        """See OutputStore."""
        for output in self._displays.get(display_id, ()):
            output.update(self.node({"data": content["data"], "metadata": content["metadata"]}))

    def register(self, display_id: str, output: Output) -> None:
        """Remember an output that shows a display, for its updates."""
        self._displays.setdefault(display_id, []).append(output)

    def unregister(self, display_id: str, output: Output) -> None:
        """Forget a registered output that was removed."""
        outputs = [item for item in self._displays.pop(display_id, ()) if item is not output]
        if outputs:
            self._displays[display_id] = outputs


class MemoryOutputs:
    """Outputs as objects in a list."""

    def __init__(self, outputs: list[Output], store: MemoryOutputStore) -> None:
        self.items = outputs
        self._store = store
        # Of the stream that is the last output. They are joined by `flush`, because joining them
        # one by one would be quadratic.
        self._pieces: list[str] = []
        self._registered: list[tuple[str, Output]] = []

    def stream(self, name: str, text: str) -> None:
        """See Outputs."""
        if not self._pieces or self.items[-1]["name"] != name:
            self._close_stream()
            self.items.append(self._store.node({"output_type": "stream", "name": name}))
        self._pieces.append(text)
        self.items[-1]["text"] = self._pieces

    def add(self, output: Output, display_id: str | None) -> None:
        """See Outputs."""
        self._close_stream()
        self.items.append(self._store.node(output))
        if display_id is not None:
            self._registered.append((display_id, self.items[-1]))
            self._store.register(*self._registered[-1])

    def clear(self) -> None:
        """See Outputs."""
        self.items.clear()
        self._pieces = []
        for registration in self._registered:
            self._store.unregister(*registration)
        self._registered.clear()

    def flush(self) -> None:
        """See Outputs."""
        if self._pieces and self.items[-1]["text"] is self._pieces:
            self.items[-1]["text"] = apply_overwrites("".join(self._pieces))

    def _close_stream(self) -> None:
        self.flush()
        self._pieces = []
