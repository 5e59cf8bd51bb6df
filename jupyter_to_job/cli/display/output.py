"""What the commands print: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from ...domain.errors import JobsError

HANDLER = "jupyter_to_job"
"""Name of the error handler for what a terminal's encoding lacks."""


def make_safe() -> None:
    """Let stdout and stderr take any text: file names of odd bytes as they are, the rest escaped.

    A notebook may print what the terminal's encoding lacks; that must not end `logs`. And a
    stream that the caller closed (`>&-`) takes nothing.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            stays_open = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as they do
            setattr(sys, name, stays_open)
    codecs.register_error(HANDLER, _stand_in)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    if all("\udc80" <= character <= "\udcff" for character in text):
        return text.encode("ascii", "surrogateescape"), error.end
    return codecs.backslashreplace_errors(error)


def write(text: str) -> None:
    """Write text to stdout at once, and all of it, however long it is.

    Not by `print`: where Python is told not to buffer, that loses what one `write(2)` leaves.
    """
    sys.stdout.flush()
    rest = memoryview(text.encode(sys.stdout.encoding, HANDLER))
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def flush() -> None:
    """Write what is buffered, here where a reader that left can still be told apart."""
    sys.stdout.flush()


def drop() -> None:
    """Give up on stdout, which takes no more: the interpreter's exit must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Say something that is not the answer."""
    click.echo(text, err=True)


def problem(error: JobsError, about: str | None = None) -> None:
    """Say what went wrong, with which of several things (`about`), and what to do."""
    named = about is None or error.message.startswith(about)
    note(f"Error: {error.message}" if named else f"Error: {about}: {error.message}")
    if error.hint:
        note(error.hint)


def document(value: Any) -> None:
    """Print one JSON document."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # lone surrogates too: legal in JSON when escaped, never in UTF-8
        text = json.dumps(value, indent=2)
    write(f"{text}\n")
