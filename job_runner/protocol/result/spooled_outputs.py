"""The outputs of a cell as text of the result, in a spool. Only their extents are in memory.

Text that cannot change any more is written at once: every line of a stream but the last one, and
every output without a display id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from . import json_writer
from .carriage_return import StreamText, overwrites
from .spool import Extent, Spool, encode

Output = dict[str, Any]

_MAX_LINE = 128 << 10
"""Characters of an unfinished line in memory; a longer line is in the spool."""
_MAX_ENDED_LINE = 1 << 10
"""The same for a cell that has ended, of which there may be many."""
_SEPARATOR = ",\n"


class SpoolOutputStore:
    """Outputs as text in a spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        # Weak, so that a display is forgotten with its last output.
        self._displays: WeakValueDictionary[str, _Display] = WeakValueDictionary()

    def outputs(self, cell: dict[str, Any]) -> SpooledOutputs:
        """See OutputStore. The cell gets them as its `outputs`, for `notebook.file_parts`."""
        outputs = cell["outputs"] = SpooledOutputs(self._spool, self)
        return outputs

    def update(self, display_id: str, content: Output) -> None:
        """See OutputStore."""
        display = self._displays.get(display_id)
        if display is not None:
            display.show(self._spool, content)

    def display(self, display_id: str, content: Output) -> _Display:
        """Return the display of an id; a new one has this content."""
        display = self._displays.get(display_id)
        if display is None:
            display = self._displays[display_id] = _Display()
            display.show(self._spool, content)
        return display


class _Display:
    """A display: content of one or more outputs, which may change. There may be many."""

    __slots__ = ("__weakref__", "data", "metadata")

    data: Extent
    metadata: Extent

    def show(self, spool: Spool, content: Output) -> None:
        """Replace the content."""
        indent = json_writer.OUTPUT_INDENT + 1
        self.data = spool.write(json_writer.format_mime_bundle(content["data"], indent))
        self.metadata = spool.write(json_writer.format_value(content["metadata"], indent))


class _DisplayOutput:
    """An output that shows a display."""

    __slots__ = ("_count", "_display", "_kind")

    def __init__(self, display: _Display, kind: str, count: int | None) -> None:
        self._display = display
        self._kind = kind
        self._count = count

    def parts(self) -> Iterator[Extent | bytes]:
        """Yield the text of the output."""
        indent = " " * (json_writer.OUTPUT_INDENT + 1)
        yield f'{_SEPARATOR}{" " * json_writer.OUTPUT_INDENT}{{\n{indent}"data": '.encode()
        yield self._display.data
        if self._kind == "execute_result":
            yield f',\n{indent}"execution_count": {json.dumps(self._count)}'.encode()
        yield f',\n{indent}"metadata": '.encode()
        yield self._display.metadata
        end = " " * json_writer.OUTPUT_INDENT + "}"
        yield f',\n{indent}"output_type": "{self._kind}"\n{end}'.encode()


class SpooledOutputs:
    """Outputs as extents of a spool. Each begins with a separator, the first one too."""

    def __init__(self, spool: Spool, store: SpoolOutputStore) -> None:
        self._spool = spool
        self._store = store
        self._parts: list[Extent | _DisplayOutput] = []
        self._stream: _Stream | None = None

    def stream(self, name: str, text: str) -> None:
        """See Outputs."""
        if self._stream is None or self._stream.name != name:
            self._close_stream()
            self._stream = _Stream(name, self._spool)
            self._append(self._stream.head())
        for start in range(0, len(text), _MAX_LINE):
            self._append(*self._stream.feed(text[start : start + _MAX_LINE]))

    def add(self, output: Output, display_id: str | None) -> None:
        """See Outputs."""
        self._close_stream()
        if display_id is None:
            self._append(self._spool.write(_SEPARATOR + json_writer.format_output(output)))
        else:
            display = self._store.display(display_id, output)
            self._parts.append(
                _DisplayOutput(display, output["output_type"], output.get("execution_count"))
            )

    def clear(self) -> None:
        """See Outputs."""
        self._parts.clear()
        self._stream = None

    def flush(self) -> None:
        """See Outputs."""
        if self._stream is not None:
            self._stream.spill(_MAX_ENDED_LINE)

    def parts(self) -> Iterator[Extent | bytes]:
        """Yield the text of all outputs as they are now, each with a separator before it."""
        for part in self._parts:
            if isinstance(part, _DisplayOutput):
                yield from part.parts()
            else:
                yield part
        if self._stream is not None:
            yield from self._stream.tail()

    def _append(self, *extents: Extent) -> None:
        """Append extents; adjacent ones become one."""
        for extent in extents:
            last_part = self._parts[-1] if self._parts else None
            if isinstance(last_part, Extent) and last_part.end == extent.offset:
                self._parts[-1] = Extent(last_part.offset, last_part.length + extent.length)
            else:
                self._parts.append(extent)

    def _close_stream(self) -> None:
        if self._stream is not None:
            for part in self._stream.tail():
                self._append(part if isinstance(part, Extent) else self._spool.append(part))
            self._stream = None


class _Stream:
    """The stream that is a cell's last output. Its finished lines are written at once.

    The beginning of a long unfinished line is spilled into the spool, too, but kept apart: a
    carriage return may still change it.
    """

    _INDENT = json_writer.OUTPUT_INDENT + 2

    def __init__(self, name: str, spool: Spool) -> None:
        self.name = name
        self._spool = spool
        self._text = StreamText()
        self._spilled: list[Extent] = []  # of the last line: its opening quote, and pieces
        self._cursor: int | None = None
        self._empty = True

    def head(self) -> Extent:
        """Write the output up to its text."""
        indent = " " * (json_writer.OUTPUT_INDENT + 1)
        name = json_writer.quote(self.name)
        text = (
            f'{_SEPARATOR}{" " * json_writer.OUTPUT_INDENT}{{\n{indent}"name": {name},\n'
            f'{indent}"output_type": "stream",\n{indent}"text": ['
        )
        return self._spool.write(text)

    def feed(self, text: str) -> Iterator[Extent]:
        """Take a piece of text; yield the extents of the lines that it finished."""
        if self._spilled and (self._cursor is not None or overwrites(text)):
            self._unspill()
        finished_text = self._text.feed(text)
        if finished_text:
            lines = json_writer.format_lines(finished_text, self._INDENT)
            yield from self._spilled
            yield self._spool.write(lines[1:] if self._spilled else self._separator() + lines)
            self._spilled = []
            self._empty = False
        if self._text.plain:  # a line that is overwritten would be reloaded for every change
            self.spill(_MAX_LINE)

    def spill(self, max_line: int) -> None:
        """Write the last line so far, if it is longer than `max_line`."""
        if len(self._text) <= max_line:
            return
        if not self._spilled:
            self._spilled.append(self._spool.write(self._separator() + '"'))
        self._cursor = self._text.cursor
        self._spilled.append(self._spool.write(json_writer.quote(self._text.line)[1:-1]))
        self._text = StreamText()

    def tail(self) -> Iterator[Extent | bytes]:
        """Yield the last line as it is now, and the end of the output."""
        line = json_writer.quote(self._text.line)
        if self._spilled:
            yield from self._spilled
            yield encode(line[1:])
        elif len(self._text):
            yield encode(self._separator() + line)
        elif self._empty:
            yield b"]\n" + b" " * json_writer.OUTPUT_INDENT + b"}"
            return
        yield f"\n{' ' * (self._INDENT - 1)}]\n{' ' * json_writer.OUTPUT_INDENT}}}".encode()

    def _separator(self) -> str:
        """Return the text between two lines."""
        return ("" if self._empty else ",") + "\n" + " " * self._INDENT

    def _unspill(self) -> None:
        """Read the spilled beginning of the last line back into memory."""
        pieces = [
            json.loads(b'"%b"' % b"".join(self._spool.read(piece))) for piece in self._spilled[1:]
        ]
        self._text = StreamText([*pieces, self._text.line], self._cursor)
        self._spilled, self._cursor = [], None
