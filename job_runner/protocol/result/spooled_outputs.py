"""The outputs of a cell as text of the result, in a spool: in memory are places only.

What cannot change any more is written the moment it comes: every line of a stream but the last one,
and every output but those with a display id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from . import json_writer
from .carriage_return import StreamText, overwrites
from .spool import Extent, Spool

Output = dict[str, Any]

_LONG = 128 << 10
"""Characters of an unfinished line in memory; what is longer lies in the spool."""
_SHORT = 1 << 10
"""The same for a cell that has ended: there may be many of those."""
_SEPARATOR = ",\n"


class SpoolOutputStore:
    """Outputs as text in a spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        # What is not shown anywhere any more need not be known here.
        self._displays: WeakValueDictionary[str, _Display] = WeakValueDictionary()

    def outputs(self, cell: dict[str, Any]) -> SpooledOutputs:
        """See Shelf. The cell holds them itself, for who writes it."""
        made = cell["outputs"] = SpooledOutputs(self._spool, self)
        return made

    def update(self, display_id: str, shown: Output) -> None:
        """See Shelf."""
        display = self._displays.get(display_id)
        if display is not None:
            display.show(self._spool, shown)

    def display(self, display_id: str, shown: Output) -> _Display:
        """Return the display of an id, which shows this."""
        display = self._displays.get(display_id)
        if display is None:
            display = self._displays[display_id] = _Display()
            display.show(self._spool, shown)
        return display


class _Display:
    """What is shown at one or more places, and may change. There may be many."""

    __slots__ = ("__weakref__", "data", "metadata")

    data: Extent
    metadata: Extent

    def show(self, spool: Spool, shown: Output) -> None:
        """Show something else."""
        indent = json_writer.OUTPUT + 1
        self.data = spool.write(json_writer.write_mime_bundle(shown["data"], indent))
        self.metadata = spool.write(json_writer.write_value(shown["metadata"], indent))


class _Place:
    """An output that shows a display."""

    __slots__ = ("_count", "_display", "_kind")

    def __init__(self, display: _Display, kind: str, count: int | None) -> None:
        self._display = display
        self._kind = kind
        self._count = count

    def parts(self) -> Iterator[Extent | bytes]:
        """Yield the text of the output."""
        indent = " " * (json_writer.OUTPUT + 1)
        yield f'{_SEPARATOR}{" " * json_writer.OUTPUT}{{\n{indent}"data": '.encode()
        yield self._display.data
        if self._kind == "execute_result":
            yield f',\n{indent}"execution_count": {json.dumps(self._count)}'.encode()
        yield f',\n{indent}"metadata": '.encode()
        yield self._display.metadata
        yield f',\n{indent}"output_type": "{self._kind}"\n{" " * json_writer.OUTPUT}}}'.encode()


class SpooledOutputs:
    """Outputs as places in a spool. Each begins with a separator, the first one too."""

    def __init__(self, spool: Spool, shelf: SpoolOutputStore) -> None:
        self._spool = spool
        self._shelf = shelf
        self._parts: list[Extent | _Place] = []
        self._stream: _Stream | None = None

    def stream(self, name: str, text: str) -> None:
        """See Outputs."""
        if self._stream is None or self._stream.name != name:
            self._close_stream()
            self._stream = _Stream(name, self._spool)
            self._take(self._stream.head())
        for start in range(0, len(text), _LONG):
            self._take(*self._stream.feed(text[start : start + _LONG]))

    def add(self, output: Output, display_id: str | None) -> None:
        """See Outputs."""
        self._close_stream()
        if display_id is None:
            self._take(self._spool.write((_SEPARATOR, *json_writer.output(output))))
        else:
            display = self._shelf.display(display_id, output)
            self._parts.append(
                _Place(display, output["output_type"], output.get("execution_count"))
            )

    def clear(self) -> None:
        """See Outputs."""
        self._parts.clear()
        self._stream = None

    def settle(self) -> None:
        """See Outputs."""
        if self._stream is not None:
            self._stream.put_by(_SHORT)

    def parts(self) -> Iterator[Extent | bytes]:
        """Yield the text of all outputs as they stand, each with a separator before it."""
        for part in self._parts:
            if isinstance(part, _Place):
                yield from part.parts()
            else:
                yield part
        if self._stream is not None:
            yield from self._stream.rest()

    def _take(self, *extents: Extent) -> None:
        """Hold on to places; those that follow each other are one."""
        for extent in extents:
            last = self._parts[-1] if self._parts else None
            if isinstance(last, Extent) and last.end == extent.offset:
                self._parts[-1] = Extent(last.offset, last.length + extent.length)
            else:
                self._parts.append(extent)

    def _close_stream(self) -> None:
        if self._stream is not None:
            for part in self._stream.rest():
                self._take(part if isinstance(part, Extent) else self._spool.append(part))
            self._stream = None


class _Stream:
    """The stream that is a cell's last output: what is finished of it is written at once.

    The beginning of an unfinished line that is long lies in the spool, too, but apart: a carriage
    return may still take it back.
    """

    _INDENT = json_writer.OUTPUT + 2

    def __init__(self, name: str, spool: Spool) -> None:
        self.name = name
        self._spool = spool
        self._text = StreamText()
        self._opening: Extent | None = None
        self._put_by: list[Extent] = []
        self._cursor: int | None = None
        self._empty = True

    def head(self) -> Extent:
        """Write what stands before the text."""
        indent = " " * (json_writer.OUTPUT + 1)
        name = json_writer.quote(self.name)
        text = (
            f'{_SEPARATOR}{" " * json_writer.OUTPUT}{{\n{indent}"name": {name},\n'
            f'{indent}"output_type": "stream",\n{indent}"text": ['
        )
        return self._write(text)

    def feed(self, text: str) -> Iterator[Extent]:
        """Take a piece of text; yield the places of what it finished."""
        if self._opening is not None and (self._cursor is not None or overwrites(text)):
            self._take_back()
        done = self._text.feed(text)
        if done:
            lines = "".join(json_writer.write_lines(done, self._INDENT))
            if self._opening is None:
                yield self._write(self._before() + lines)
            else:
                yield from self._begun()
                yield self._write(lines[1:])
                self._opening, self._put_by = None, []
            self._empty = False
        if self._text.plain:  # else it would come and go with every change
            self.put_by(_LONG)

    def put_by(self, longest: int) -> None:
        """Write what there is of the last line, if that is longer."""
        if len(self._text) <= longest:
            return
        if self._opening is None:
            self._opening = self._write(self._before() + '"')
        self._cursor = self._text.cursor
        line = self._text.line
        for start in range(0, len(line), _LONG):
            self._put_by.append(self._write(json_writer.quote(line[start : start + _LONG])[1:-1]))
        self._text = StreamText()

    def rest(self) -> Iterator[Extent | bytes]:
        """Yield the last line as it stands, and what ends the output."""
        line = json_writer.quote(self._text.line)
        if self._opening is not None:
            yield from self._begun()
            yield _encode(line[1:])
        elif len(self._text):
            yield _encode(self._before() + line)
        elif self._empty:
            yield b"]\n" + b" " * json_writer.OUTPUT + b"}"
            return
        yield f"\n{' ' * (self._INDENT - 1)}]\n{' ' * json_writer.OUTPUT}}}".encode()

    def _before(self) -> str:
        """Return what stands before a line."""
        return ("" if self._empty else ",") + "\n" + " " * self._INDENT

    def _begun(self) -> Iterator[Extent]:
        if self._opening is not None:
            yield self._opening
            yield from self._put_by

    def _take_back(self) -> None:
        """Bring the beginning of the last line back into memory."""
        pieces = [
            json.loads(b'"%b"' % b"".join(self._spool.read(extent))) for extent in self._put_by
        ]
        self._text = StreamText([*pieces, self._text.line], self._cursor)
        self._opening, self._put_by, self._cursor = None, [], None

    def _write(self, text: str) -> Extent:
        return self._spool.append(_encode(text))


def _encode(text: str) -> bytes:
    return b"".join(json_writer.chunks((text,)))
