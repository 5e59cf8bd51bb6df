"""Applies carriage returns and backspaces to a stream's text, as JupyterLab does before it saves.

The rules are those of JupyterLab's output model (`processText`). A `\\r` goes to the beginning of
the line, and the text after it overwrites; `\\b` removes a character; `\\n` goes to the end of the
text. So 20,000 updates of a progress bar are one line. They change the last line only, so all
earlier lines are final.
"""

from __future__ import annotations

from collections.abc import Iterable


def overwrites(text: str) -> bool:
    """Tell whether a text may change what stands before it in its line."""
    return "\r" in text or "\b" in text


def apply_overwrites(text: str) -> str:
    """Return a complete text as it is shown."""
    stream = StreamText()
    return stream.feed(text) + stream.line


class StreamText:
    """A text that comes in pieces. It holds the last line only; its cost is linear in the pieces.

    `line` is the start of that line, before the first piece. `cursor` is the position in it of the
    next character; None is its end.
    """

    def __init__(self, line: Iterable[str] = (), cursor: int | None = None) -> None:
        self._plain = list(line)
        self._overwritten: _OverwrittenLine | None = None
        if cursor is not None:
            self._overwrite().cursor = cursor

    def feed(self, text: str) -> str:
        """Take more text; return the lines that it finished."""
        if self._overwritten is None and not overwrites(text):
            end = text.rfind("\n") + 1
            if not end:
                self._plain.append(text)
                return ""
            finished_text = "".join((*self._plain, text[:end]))
            self._plain = [text[end:]]
            return finished_text
        start, *others = text.split("\n")
        self._write(start)
        finished: list[str] = []
        for line in others:
            finished += self.line, "\n"
            self._plain, self._overwritten = [], None
            self._write(line)
        return "".join(finished)

    @property
    def line(self) -> str:
        """The last line as it stands."""
        return "".join(self._plain) if self._overwritten is None else self._overwritten.text

    @property
    def plain(self) -> bool:
        """Whether nothing in the last line was written over."""
        return self._overwritten is None

    @property
    def cursor(self) -> int | None:
        """The position in the last line of the next character; None is its end."""
        over = self._overwritten
        return None if over is None or over.cursor == len(over) else over.cursor

    def __len__(self) -> int:
        """Return the length of the last line."""
        if self._overwritten is not None:
            return len(self._overwritten)
        return sum(map(len, self._plain))

    def _write(self, text: str) -> None:
        """Take a piece of one line."""
        if self._overwritten is not None or overwrites(text):
            self._overwrite().write(text)
        else:
            self._plain.append(text)

    def _overwrite(self) -> _OverwrittenLine:
        if self._overwritten is None:
            self._overwritten = _OverwrittenLine("".join(self._plain))
            self._plain = []
        return self._overwritten


class _OverwrittenLine:
    """A line that is written over in place.

    It is stored as bytes: one for each character while all of them fit, else four. A list of
    characters would be many times as large.
    """

    def __init__(self, text: str) -> None:
        self._width, self._codec = 1, "latin-1"
        self._buffer = bytearray()
        self.cursor = 0
        self._put(text)

    def __len__(self) -> int:
        return len(self._buffer) // self._width

    @property
    def text(self) -> str:
        return self._buffer.decode(self._codec, "surrogatepass")

    def write(self, text: str) -> None:
        start, *others = text.split("\r")
        self._write_on(start)
        for piece in others if "\b" in text else _visible_pieces(others):
            self.cursor = 0
            self._write_on(piece)

    def _write_on(self, text: str) -> None:
        start, *others = text.split("\b")
        self._put(start)
        for piece in others:
            if self.cursor:
                self.cursor -= 1
                at = self.cursor * self._width
                del self._buffer[at : at + 2 * self._width]
            self._put(piece)

    def _put(self, text: str) -> None:
        try:
            piece = text.encode(self._codec, "surrogatepass")
        except UnicodeEncodeError:
            text_so_far = self.text
            self._width, self._codec = 4, "utf-32-le"
            self._buffer = bytearray(text_so_far.encode(self._codec, "surrogatepass"))
            piece = text.encode(self._codec, "surrogatepass")
        at = self.cursor * self._width
        self._buffer[at : at + len(piece)] = piece
        self.cursor += len(text)


def _visible_pieces(pieces: list[str]) -> list[str]:
    """Return the pieces that a later one does not cover: of a progress bar, the last."""
    visible: list[str] = []
    for piece in reversed(pieces):
        if not visible or len(piece) > len(visible[-1]):
            visible.append(piece)
    return visible[::-1]
