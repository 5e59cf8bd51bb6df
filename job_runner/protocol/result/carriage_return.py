"""What carriage returns and backspaces leave of a stream's text: what JupyterLab would have saved.

The rules are those of JupyterLab's output model (`processText`): `\\r` goes to the beginning of the
line, what follows overwrites; `\\b` takes a character away; `\\n` goes to the end of the text. So
20,000 updates of a progress bar are one line, here as there. None of them reaches back beyond the
last line: whatever is above it can be written down for good.
"""

from __future__ import annotations

from collections.abc import Iterable


def overwrites(text: str) -> bool:
    """Tell whether a text may change what stands before it in its line."""
    return "\r" in text or "\b" in text


def apply_overwrites(text: str) -> str:
    """Return what is left of a whole text."""
    stream = StreamText()
    return stream.feed(text) + stream.line


class StreamText:
    """A text that comes in pieces. Holds its last line only, and costs the length of what comes.

    `line` is what there is of that line before the first piece, and `cursor` where in it the
    next character goes; None: to its end.
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
            done = "".join((*self._plain, text[:end]))
            self._plain = [text[end:]]
            return done
        first, *others = text.split("\n")
        self._write(first)
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
        """Where in the last line the next character goes; None: to its end."""
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

    As bytes, one a character while that is enough for all of them, else four: a list of characters
    would be many times as large.
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
        first, *others = text.split("\r")
        self._write_on(first)
        for piece in others if "\b" in text else _left_of(others):
            self.cursor = 0
            self._write_on(piece)

    def _write_on(self, text: str) -> None:
        first, *others = text.split("\b")
        self._put(first)
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
            whole = self.text
            self._width, self._codec = 4, "utf-32-le"
            self._buffer = bytearray(whole.encode(self._codec, "surrogatepass"))
            piece = text.encode(self._codec, "surrogatepass")
        at = self.cursor * self._width
        self._buffer[at : at + len(piece)] = piece
        self.cursor += len(text)


def _left_of(pieces: list[str]) -> list[str]:
    """Return those that a later one does not cover wholly: of a progress bar, the last."""
    left: list[str] = []
    for piece in reversed(pieces):
        if not left or len(piece) > len(left[-1]):
            left.append(piece)
    return left[::-1]
