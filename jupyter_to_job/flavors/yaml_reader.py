"""Reads YAML into PyYAML's nodes, which know their lines and columns, within bounds.

PyYAML's composer recurses and keeps equal keys, and its constructor expands aliases without limit
and turns `yes`, `010` and `1.10` into something else than the file says. So a composer of our own
checks depth and size before it descends, merges mappings, and takes every scalar as the text that
is written (`null` is None). The models know which types they want.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import yaml
from yaml.composer import Composer
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
_NULL, _MERGE, _TEXT = "null", "<<", "text"
"""Tags that `_Composer.resolve` gives to scalars without a tag."""
_YAML = "tag:yaml.org,2002:"
_CORE = ("str", "int", "float", "bool", "null", "map", "seq")
_CORE_TAGS = frozenset(["!", *(_YAML + name for name in _CORE)])


Place = tuple[int, int]
"""Where something begins: line and column, counted from 1."""


class Unreadable(Exception):
    """Nothing can be made of the text beyond the last of `faults`."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[-1].message)
        self.faults = list(faults)


def read(data: bytes) -> tuple[yaml.Node, list[Fault]]:
    """Return the one document in `data`, and those faults that do not prevent reading it.

    In the nodes the `value` of a mapping is a dict: by key, the nodes of key and value. Raises
    Unreadable.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable([Fault(1, 1, f"The file is over {MAX_BYTES >> 20} MiB.", "Shorten it.")])
    text, faults = _decode(data), list[Fault]()
    loader: Any = type("_Loader", (_Composer, _LOADER), {})
    try:
        return loader(text, faults).read_document(), faults
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The parser in Python lets through what chr() and int() say of escapes and versions.
        raise Unreadable([*faults, _syntax_fault(error)]) from error


def plain_value(node: yaml.Node) -> Any:
    """Return None, text, or a list or dict of the same."""
    if isinstance(node, yaml.MappingNode):
        return {key: plain_value(value) for key, (_, value) in node.value.items()}
    if isinstance(node, yaml.SequenceNode):
        return [plain_value(item) for item in node.value]
    return None if node.tag == _NULL else node.value


def find_places(node: yaml.Node, path: Sequence[Any]) -> tuple[Place, Place]:
    """Return the places (line and column) of key and value at `path`, or of the nearest above."""
    key = node
    for step in path:
        if isinstance(node, yaml.MappingNode) and step in node.value:
            key, node = node.value[step]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            key = node = node.value[step]
        else:
            break
    return _place_of(key.start_mark), _place_of(node.start_mark)


def clip(text: str, limit: int = 60) -> str:
    """Return text for a message: on one line, and not longer than a line."""
    line = text if text.isprintable() else repr(text)[1:-1]
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


class _Composer(Composer):
    """Composes nodes from the events of the loader that it is mixed into, in C or in Python."""

    check_event: Callable[[type[yaml.Event]], bool]
    peek_event: Callable[[], Any]
    get_event: Callable[[], Any]

    def __init__(self, text: str, faults: list[Fault]) -> None:
        _LOADER.__init__(self, text)
        self.anchors = {}  # the loader in C has none
        self._faults = faults
        self._depth = 0
        self._count = 0
        self._deepest = 0
        """Depth of the deepest node since the innermost anchor's began, aliases expanded."""
        self._counts: dict[str, tuple[int, int]] = {}
        """By anchor: how many values and levels its node has. An unfinished node is not in it."""

    def read_document(self) -> yaml.Node:
        """Return the only document's node. Raises Unreadable and YAMLError."""
        root = self.get_node() if self.check_node() else None
        if root is None:
            self._fail(None, "The file is empty.", "Begin with the shipped one.")
        if not self.check_event(yaml.StreamEndEvent):
            mark = self.peek_event().start_mark
            self._fail(mark, "A second document begins here.", "Keep one, delete the other.")
        return root

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        """Return the tag of a node that has none: a quoted scalar is always text."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _NULL if value in _NULLS else _MERGE if value == "<<" else _TEXT
        return _TEXT

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the next node, within the bounds."""
        event = self.peek_event()
        mark, anchor = event.start_mark, event.anchor
        is_key = isinstance(parent, yaml.MappingNode) and index is None
        if isinstance(event, yaml.AliasEvent):
            return self._compose_alias(anchor, mark, is_key=is_key)
        if event.tag is not None and event.tag not in _CORE_TAGS:
            tag = clip(event.tag.replace(_YAML, "!!"))
            self._faults.append(_fault(mark, f"The tag {tag} is not allowed.", "Delete it."))
        start = self._count
        self._add_to_count(getattr(event, "value", ""), mark)
        self.anchors.pop(anchor, None)  # YAML lets an anchor be defined again, PyYAML does not
        self._counts.pop(anchor, None)
        node: yaml.Node
        if isinstance(event, yaml.ScalarEvent):
            self._check_characters(event)
            node, levels = self.compose_scalar_node(anchor), 0
        elif is_key:
            self._fail(mark, "A key must be plain text.", "Write it as key: value.")
        else:
            node, levels = self._compose_collection(parent, index, mark)
        self._counts[anchor] = self._count - start, levels
        return node

    def _check_characters(self, event: yaml.ScalarEvent) -> None:
        """Look for characters that are written as an escape, such as `"\\0"`."""
        character = Reader.NON_PRINTABLE.search(event.value) if event.style == '"' else None
        if character:
            self._faults.append(_character_fault(character[0], _place_of(event.start_mark)))

    def _compose_collection(self, parent: Any, index: Any, mark: Any) -> tuple[yaml.Node, int]:
        """Return the list or mapping that begins here, and how many levels it has."""
        deepest, self._deepest = self._deepest, self._depth
        self._descend(1, mark)
        self._depth += 1
        node: Any = super().compose_node(parent, index)
        self._depth -= 1
        levels = self._deepest - self._depth
        self._deepest = max(deepest, self._deepest)
        return node, levels

    def _descend(self, levels: int, mark: Any) -> None:
        """Note a node with so many levels of lists and mappings at this depth."""
        self._deepest = max(self._deepest, self._depth + levels)
        if self._deepest > MAX_DEPTH:
            self._fail(mark, f"Nested deeper than {MAX_DEPTH} levels.", "Flatten it.")

    def _compose_alias(self, anchor: str, mark: Any, *, is_key: bool) -> yaml.Node:
        if anchor not in self._counts:
            self._fail(mark, f"There is no &{clip(anchor)} before this.", "Define it above.")
        count, levels = self._counts[anchor]
        self._add_to_count(count, mark)
        self._descend(levels, mark)
        self.get_event()
        node = self.anchors[anchor]
        if is_key and not isinstance(node, yaml.ScalarNode):
            self._fail(mark, "A key must be plain text.", "Write it as key: value.")
        return yaml.ScalarNode(_TEXT, node.value, mark) if is_key else node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping. Its own keys count before those that `<<` merges."""
        node = super().compose_mapping_node(anchor)
        pairs: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                merged += [source for source in sources if isinstance(source, yaml.MappingNode)]
                if not all(isinstance(source, yaml.MappingNode) for source in sources):
                    message, hint = "`<<` merges mappings only.", "Give it the alias of one."
                    self._faults.append(_fault(key.start_mark, message, hint))
                continue
            if key.value in pairs:
                line = pairs[key.value][0].start_mark.line + 1
                message = f"`{clip(key.value)}` is here twice, first in line {line}."
                self._faults.append(_fault(key.start_mark, message, "Keep one."))
            pairs[key.value] = key, value
        for source in merged:
            for name, pair in source.value.items():
                pairs.setdefault(name, pair)
        node.value = pairs
        return node

    def _add_to_count(self, added: int | str, mark: Any) -> None:
        self._count += added if isinstance(added, int) else 1 + len(added) // LONG_TEXT
        if self._count > MAX_VALUES:
            message = f"More than {MAX_VALUES} values up to here, aliases expanded."
            self._fail(mark, message, "Write fewer.")

    def _fail(self, mark: Any, message: str, hint: str) -> NoReturn:
        raise Unreadable([*self._faults, _fault(mark, message, hint)])


def _decode(data: bytes) -> str:
    """Decode, and refuse characters that YAML does not allow: parsers disagree on their place."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _end_of(error.object[: error.start].decode("utf-8-sig"))
        fault = Fault(*place, "This is not UTF-8.", "Save the file as UTF-8.")
        raise Unreadable([fault]) from error
    character = Reader.NON_PRINTABLE.search(text)
    if character:
        raise Unreadable([_character_fault(character[0], _end_of(text[: character.start()]))])
    return text


def _character_fault(character: str, place: Place) -> Fault:
    message = f"The character U+{ord(character):04X} is not allowed."
    return Fault(*place, message, "Delete it.")


def _syntax_fault(error: Exception) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    parts = [getattr(error, name, None) for name in ("problem", "context")]
    problem = ", ".join(part for part in parts if part) or "cannot be read"
    hint = "Look at indentation, quotes and brackets."
    return _fault(mark, f"This is no YAML: {problem}.", hint)


def _fault(mark: Any, message: str, hint: str) -> Fault:
    return Fault(*_place_of(mark), message, hint)


def _place_of(mark: Any) -> Place:
    """Return the place of PyYAML's mark, which counts from 0; of no mark, the beginning."""
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


def _end_of(text: str) -> Place:
    return text.count("\n") + 1, len(text) - text.rfind("\n")
