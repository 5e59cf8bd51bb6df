"""The outputs of a cell while they come: what the fold needs of them, and objects in memory.

Those are for papermill, which has its whole notebook in memory, and for what an Output widget
captured. A result's lie in a spool (`spooled`): the rules of what is shown are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .carriage_return import apply_overwrites

Output = dict[str, Any]


class Outputs(Protocol):
    """What is shown below one cell."""

    def stream(self, name: str, text: str) -> None:
        """Take a piece of a stream: it goes on where the last output is of this stream."""

    def add(self, output: Output, display_id: str | None) -> None:
        """Take an output that is no stream."""

    def clear(self) -> None:
        """Show nothing any more."""

    def settle(self) -> None:
        """Bring in order what has come: now nothing comes for a while."""


class OutputStore(Protocol):
    """Where the outputs of a notebook lie."""

    def outputs(self, cell: dict[str, Any]) -> Outputs:
        """Return the outputs of a cell that has none yet."""

    def update(self, display_id: str, shown: Output) -> None:
        """Change `data` and `metadata` wherever a display is shown."""


class MemoryOutputStore:
    """Outputs as objects in memory. `node` makes them of dictionaries."""

    def __init__(self, node: Callable[[Output], Output] = dict) -> None:
        self.node = node
        self._displays: dict[str, list[Output]] = {}

    def outputs(self, cell: dict[str, Any]) -> MemoryOutputs:
        """See Shelf."""
        return MemoryOutputs(cell["outputs"], self)

    def update(self, display_id: str, shown: Output) -> None:
        """See Shelf."""
        for output in self._displays.get(display_id, ()):
            output.update(self.node({"data": shown["data"], "metadata": shown["metadata"]}))

    def place(self, display_id: str, output: Output) -> None:
        """Remember an output that shows a display."""
        self._displays.setdefault(display_id, []).append(output)

    def remove(self, display_id: str, output: Output) -> None:
        """Forget an output that was placed, and is shown no more."""
        left = [other for other in self._displays.pop(display_id, ()) if other is not output]
        if left:
            self._displays[display_id] = left


class MemoryOutputs:
    """Outputs as objects in a list."""

    def __init__(self, outputs: list[Output], shelf: MemoryOutputStore) -> None:
        self.shown = outputs
        self._shelf = shelf
        # Of the stream that is the last output. Apart until the text is settled: joining pieces one
        # by one would be quadratic.
        self._pieces: list[str] = []
        self._placed: list[tuple[str, Output]] = []

    def stream(self, name: str, text: str) -> None:
        """See Outputs."""
        if not self._pieces or self.shown[-1]["name"] != name:
            self._close_stream()
            self.shown.append(self._shelf.node({"output_type": "stream", "name": name}))
        self._pieces.append(text)
        self.shown[-1]["text"] = self._pieces

    def add(self, output: Output, display_id: str | None) -> None:
        """See Outputs."""
        self._close_stream()
        self.shown.append(self._shelf.node(output))
        if display_id is not None:
            self._placed.append((display_id, self.shown[-1]))
            self._shelf.place(*self._placed[-1])

    def clear(self) -> None:
        """See Outputs."""
        self.shown.clear()
        self._pieces = []
        for place in self._placed:
            self._shelf.remove(*place)
        self._placed.clear()

    def settle(self) -> None:
        """See Outputs."""
        if self._pieces and self.shown[-1]["text"] is self._pieces:
            self.shown[-1]["text"] = apply_overwrites("".join(self._pieces))

    def _close_stream(self) -> None:
        self.settle()
        self._pieces = []
