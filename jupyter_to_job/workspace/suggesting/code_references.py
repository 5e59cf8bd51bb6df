"""Finds the names in Python code: modules that it imports, and texts that it could open as files.

It reads the syntax only, and runs nothing. It joins texts where their parts are constants:
`Path("data") / "train.csv"`, or `os.path.join("data", name)` with a `name` that is assigned once.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_LINE = 80
"""Characters of a line of code that a reference has at most."""
MAX_TEXT = 1024
MAX_PARTS = 30
"""Parts that a text is joined of at most: a generated sum may have thousands of terms."""
_LINE_MAGIC = re.compile(r"^\s*(?:[%!?]|\w[\w, ]*=\s*[%!](?!=))|\?\s*$")
_CELL_MAGIC = re.compile(r"^\s*%%(\w+)")
_TRANSPARENT = frozenset(["time", "timeit", "capture", "prun"])
"""Cell magics that run their cell as Python."""
_PATHS = frozenset(["Path", "PurePath", "PosixPath", "join", "fspath", "abspath", "str"])
_WRITERS = re.compile(r"to_\w+|save\w*|dump\w*|write\w*|mkdir|makedirs|print|log\w*|imsave|imwrite")
_EXTENDING = frozenset(["append", "insert"])


@dataclass(frozen=True)
class CodeReference:
    """A module (dotted) or a text in code, and its line.

    `searched`: the text is a folder that is added to the module search path.
    """

    name: str
    line: str
    module: bool = False
    searched: bool = False


def code_references(cells: Sequence[str]) -> Iterator[CodeReference]:
    """Yield the references in cells of Python code; a cell that is no Python is skipped."""
    variables: dict[str, str] = {}
    for cell in cells:
        source = _as_python(cell)
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        with contextlib.suppress(RecursionError):  # calls on calls, hundreds deep
            yield from _Reader(source.splitlines(), variables).read(tree)


def _as_python(cell: str) -> str:
    """Return a cell as Python: IPython's own lines become `pass`."""
    magic = _CELL_MAGIC.match(cell)
    if magic is not None:
        if magic[1] not in _TRANSPARENT:
            return ""
        cell = cell.partition("\n")[2]
    lines = cell.split("\n")
    for index, line in enumerate(lines):
        if _LINE_MAGIC.search(line):
            indent = line[: len(line) - len(line.lstrip())]
            lines[index] = f"{indent}pass"
    return "\n".join(lines)


class _Reader:
    def __init__(self, lines: list[str], variables: dict[str, str]) -> None:
        self._lines = lines
        self._variables = variables

    def read(self, tree: ast.AST) -> Iterator[CodeReference]:
        """Yield the references below a node, in the order of the code."""
        stack = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._imports(node)
                continue
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._remember(node.targets[0], node.value)
            if isinstance(node, ast.expr):
                text = self._text(node)
                if text is not None:
                    yield CodeReference(text, self._line(node))
                    continue
            if isinstance(node, ast.Call):
                if self._writes(node):
                    continue
                if _called(node) in _EXTENDING and ast.unparse(node.func).startswith("sys.path."):
                    texts = [self._text(argument) for argument in node.args]
                    yield from (
                        CodeReference(text, self._line(node), searched=True)
                        for text in texts
                        if text is not None
                    )
                    continue
            stack.extend(reversed(list(ast.iter_child_nodes(node))))

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Iterator[CodeReference]:
        line = self._line(node)
        if isinstance(node, ast.Import):
            yield from (CodeReference(alias.name, line, module=True) for alias in node.names)
        elif node.module is not None and node.level == 0:
            yield CodeReference(node.module, line, module=True)
            for alias in node.names:  # each name may be a module
                yield CodeReference(f"{node.module}.{alias.name}", line, module=True)

    def _remember(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            text = self._text(value)
            if text is None or target.id in self._variables:
                self._variables.pop(target.id, None)
            else:
                self._variables[target.id] = text

    def _text(self, node: ast.expr) -> str | None:
        """Return the text of an expression, if it consists of constants."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self._variables.get(node.id)
        if isinstance(node, ast.BinOp):
            return self._joined(node)
        if isinstance(node, ast.Call) and not node.keywords:
            return self._path(node)
        return None

    def _joined(self, node: ast.expr) -> str | None:
        """Return the text of a chain of `+` and `/`: a loop, because a chain is as deep as long."""
        steps: list[tuple[str, ast.expr]] = []
        while isinstance(node, ast.BinOp):
            if not isinstance(node.op, ast.Div | ast.Add) or len(steps) + 1 == MAX_PARTS:
                return None
            steps.append(("/" if isinstance(node.op, ast.Div) else "", node.right))
            node = node.left
        text = self._text(node)
        for separator, operand in reversed(steps):
            tail = self._text(operand)
            if text is None or tail is None or len(text) + len(tail) > MAX_TEXT:
                return None
            text = f"{text}{separator}{tail}"
        return text

    def _path(self, node: ast.Call) -> str | None:
        name = _called(node)
        if name == "cwd" and not node.args:
            return "."
        if name not in _PATHS or not node.args:
            return None
        parts = [self._text(argument) for argument in node.args]
        texts = [part for part in parts if part is not None]
        return "/".join(texts) if len(texts) == len(parts) else None

    def _writes(self, node: ast.Call) -> bool:
        """Tell whether a call writes the files that it names."""
        name = _called(node)
        if name == "open":
            modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
            return any(set("wxa") & set(self._text(mode) or "") for mode in modes)
        return _WRITERS.fullmatch(name) is not None

    def _line(self, node: ast.expr | ast.stmt) -> str:
        line = self._lines[node.lineno - 1].strip() if node.lineno <= len(self._lines) else ""
        return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def _called(node: ast.Call) -> str:
    """Return the last part of the name of the function called."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
