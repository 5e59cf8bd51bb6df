"""Reads YAML into plain values that remember their places, within bounds.

PyYAML's own way to values recurses, expands aliases without limit, lets the last of two equal keys
win, and turns `yes`, `010` and `1.10` into something else than what stands there. So this builds
the values from the parser's events: without recursion, counting what aliases stand for, and with
every scalar as the text that was written (`null` is None). The models know which types they want.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import yaml
from yaml.reader import Reader

from ..domain.errors import Fault

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_VALUES = 20_000
"""Keys, scalars, lists and mappings, counted each time that an alias stands for them."""
LONG_TEXT = 1000
"""Characters of a text that count as one value more."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset(["", "~", "null", "Null", "NULL"])
_YAML = "tag:yaml.org,2002:"
_CORE = ("str", "int", "float", "bool", "null", "map", "seq")
_CORE_TAGS = frozenset(["!", *(_YAML + name for name in _CORE)])


class Place(NamedTuple):
    """Where something begins: line and column, counted from 1."""

    line: int = 1
    column: int = 1


@dataclass
class Node:
    """A value and its place; of a list or mapping also those of its parts, by index or key.

    `value` is None, text, a list or a dict of the same; `size` counts the values in it.
    """

    place: Place
    value: Any = None
    size: int = 1
    keys: dict[Any, Place] = field(default_factory=dict)
    parts: dict[Any, Node] = field(default_factory=dict)

    def find(self, path: Sequence[Any]) -> tuple[Place, Place]:
        """Return the places of key and value at `path`, or of the nearest that is there."""
        node, key = self, self.place
        for step in path:
            if step not in node.parts:
                break
            key, node = node.keys[step], node.parts[step]
        return key, node.place


class Unreadable(Exception):
    """Nothing can be made of the text beyond this fault; `faults` has it last."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[-1].message)
        self.faults = list(faults)


def read(data: bytes) -> tuple[Node, list[Fault]]:
    """Return the one document in `data`, and what is wrong with it that could be passed over.

    Raises Unreadable.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable([Fault(1, 1, f"The file is over {MAX_BYTES >> 20} MiB.", "Shorten it.")])
    builder = _Builder()
    try:
        for event in yaml.parse(_text(data), Loader=_LOADER):
            builder.take(event)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The parser in Python lets through what chr() and int() say of escapes and versions.
        raise Unreadable([*builder.faults, _syntax(error)]) from error
    if builder.root is None:
        raise Unreadable([Fault(1, 1, "The file is empty.", "Begin with the shipped one.")])
    return builder.root, builder.faults


def _text(data: bytes) -> str:
    """Decode, and refuse what YAML does not allow: parsers disagree on the place of those."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place_at(error.object[: error.start].decode("utf-8-sig"))
        fault = Fault(*place, "This is not UTF-8.", "Save the file as UTF-8.")
        raise Unreadable([fault]) from error
    odd = Reader.NON_PRINTABLE.search(text)
    if odd:
        raise Unreadable([_not_allowed(odd[0], _place_at(text[: odd.start()]))])
    return text


def _not_allowed(character: str, place: Place) -> Fault:
    message = f"The character U+{ord(character):04X} is not allowed."
    return Fault(*place, message, "Delete it.")


def _place_at(before: str) -> Place:
    """Return the place behind the text `before`."""
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n"))


def _place_of(mark: Any) -> Place:
    """Return the place of PyYAML's mark, which counts from 0; None: the beginning."""
    return Place() if mark is None else Place(mark.line + 1, mark.column + 1)


def _syntax(error: Exception) -> Fault:
    place = _place_of(getattr(error, "problem_mark", None) or getattr(error, "context_mark", None))
    said = [getattr(error, name, None) for name in ("problem", "context")]
    what = ", ".join(part for part in said if part) or "cannot be read"
    return Fault(*place, f"This is no YAML: {what}.", "Look at indentation, quotes and brackets.")


@dataclass
class _Open:
    """A list or mapping that has begun; `key` waits for its value, and is None in it for `<<`."""

    node: Node
    anchor: str | None
    key: tuple[str | None, Place] | None = None
    merged: list[Node] = field(default_factory=list)


class _Builder:
    """Puts events together. `faults` are those that could be passed over."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.faults: list[Fault] = []
        self._anchors: dict[str, Node] = {}
        self._open: list[_Open] = []
        self._values = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event. Raises Unreadable where there is no going on."""
        place = _place_of(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self._fail(place, "A second document begins here.", "Keep one, delete the other.")
        if isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor, place)
        elif isinstance(event, yaml.NodeEvent):
            self._check_tag(getattr(event, "tag", None), place)
            self._count(_weight(getattr(event, "value", "")), place)
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event, place)
            else:
                self._begin(event, place)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()

    def _begin(self, event: yaml.NodeEvent, place: Place) -> None:
        if len(self._open) == MAX_DEPTH:
            self._fail(place, f"Nested deeper than {MAX_DEPTH} levels.", "Flatten it.")
        above = self._open[-1] if self._open else None
        if above is not None and isinstance(above.node.value, dict) and above.key is None:
            self._fail(place, "A key must be plain text.", "Write it as key: value.")
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._open.append(_Open(Node(place, value), event.anchor))

    def _end(self) -> None:
        done = self._open.pop()
        for other in done.merged:  # what stands in the mapping itself wins
            for key, part in other.parts.items():
                if key not in done.node.parts:
                    _put(done.node, key, other.keys[key], part)
        if done.anchor is not None:
            self._anchors[done.anchor] = done.node
        self._add(done.node)

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> None:
        above = self._open[-1] if self._open else None
        odd = Reader.NON_PRINTABLE.search(event.value)  # written as an escape: "\\0"
        if odd:
            self.faults.append(_not_allowed(odd[0], place))
        node = Node(place, event.value, _weight(event.value))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if above is not None and isinstance(above.node.value, dict) and above.key is None:
            merge = event.implicit[0] and event.value == "<<"
            self._take_key(above, None if merge else event.value, place)
            return
        if event.value in _NULLS and event.implicit[0]:
            node.value = None
        self._add(node)

    def _take_key(self, above: _Open, key: str | None, place: Place) -> None:
        if key is not None and key in above.node.parts:
            first = above.node.keys[key].line
            self._fault(place, f"`{clip(key)}` is here twice, first in line {first}.", "Keep one.")
        above.key = (key, place)

    def _alias(self, name: str | None, place: Place) -> None:
        node = self._anchors.get(name) if name is not None else None
        if node is None:
            self._fail(place, f"There is no &{clip(str(name))} before this.", "Define it above.")
        self._count(node.size, place)
        above = self._open[-1] if self._open else None
        if above is not None and isinstance(above.node.value, dict) and above.key is None:
            if not isinstance(node.value, str):
                self._fail(place, "A key must be plain text.", "Write it as key: value.")
            self._take_key(above, node.value, place)
        else:
            self._add(node)

    def _add(self, node: Node) -> None:
        """Put a finished value where it belongs."""
        if not self._open:
            self.root = node
            return
        above = self._open[-1]
        if above.key is None:
            index = len(above.node.value)
            above.node.value.append(node.value)
            above.node.keys[index], above.node.parts[index] = node.place, node
            above.node.size += node.size
            return
        key, place = above.key
        above.key = None
        if key is None:
            above.merged.extend(self._mappings(node, place))
        else:
            _put(above.node, key, place, node)

    def _mappings(self, node: Node, place: Place) -> Iterator[Node]:
        """Yield what `<<` merges: the mapping, or those of the list."""
        for found in node.parts.values() if isinstance(node.value, list) else (node,):
            if isinstance(found.value, dict):
                yield found
            else:
                self._fault(place, "`<<` merges mappings only.", "Give it the alias of one.")

    def _check_tag(self, tag: str | None, place: Place) -> None:
        if tag is not None and tag not in _CORE_TAGS:
            shown = clip(tag.replace(_YAML, "!!"))
            self._fault(place, f"The tag {shown} is not allowed.", "Delete it.")

    def _count(self, more: int, place: Place) -> None:
        self._values += more
        if self._values > MAX_VALUES:
            message = f"More than {MAX_VALUES} values up to here, aliases expanded."
            self._fail(place, message, "Write fewer.")

    def _fault(self, place: Place, message: str, hint: str) -> None:
        self.faults.append(Fault(*place, message, hint))

    def _fail(self, place: Place, message: str, hint: str) -> NoReturn:
        raise Unreadable([*self.faults, Fault(*place, message, hint)])


def _put(into: Node, key: str, place: Place, part: Node) -> None:
    into.value[key] = part.value
    into.keys[key], into.parts[key] = place, part
    into.size += _weight(key) + part.size


def _weight(text: str) -> int:
    return 1 + len(text) // LONG_TEXT


def clip(text: str, limit: int = 60) -> str:
    """Return text for a message: on one line, and not longer than a line."""
    line = text if text.isprintable() else repr(text)[1:-1]
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
