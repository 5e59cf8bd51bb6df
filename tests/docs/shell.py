"""Commands as pages show them: which programs with which arguments, without running any."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .pages import PAGES, Page

_SHELLS = ("", "sh", "bash", "shell", "console")
_OURS = ("jupyter-to-job", "jupyter", "make", "scripts/", "python", "pip")
_ENDS = set("();<>|&")


@dataclass(frozen=True)
class ShownCommand:
    """One command of a page: its words, variables in front left out."""

    page: Page
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def shown_commands() -> Iterator[ShownCommand]:
    """Yield all commands of all pages: those in blocks, and those in the text."""
    for page in PAGES:
        for block in page.blocks:
            if block.language in _SHELLS:
                for line in _lines(block.text):
                    yield from (ShownCommand(page, words) for words in split(line))
        for span in page.spans:
            if span.startswith(_OURS):
                yield from (ShownCommand(page, words) for words in split(span))


def _lines(text: str) -> Iterator[str]:
    """Yield what a block says to type: where lines begin with `$ `, those only."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    yield from prompted or lines


def split(line: str) -> list[tuple[str, ...]]:
    """Split a line at pipes, `;`, `&&` and redirections, as a shell would; [] if it cannot."""
    # `<job directory>` stands for something that the reader fills in, and is no redirection.
    lexer = shlex.shlex(re.sub(r"<[a-z][a-z -]*>", "X", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quote that never ends: no command, but a drawing or output
        return []
    commands: list[list[str]] = [[]]
    for word in words:
        if set(word) <= _ENDS:
            commands.append([])
        elif commands[-1] or not re.match(r"[A-Z_]+=", word):
            commands[-1].append(word)
    return [tuple(command) for command in commands if command]
