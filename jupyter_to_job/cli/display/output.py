"""Prints what commands print: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from ...domain.errors import JobsError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SEQUENCE = re.compile(
    r"(?P<kept>\x1b\[[0-9;]*m|[\x08\t\n\r])"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # other control sequences
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # texts to the terminal: titles, the clipboard
    r"|\x1b[ -/]*[0-~]"  # a reset, for one
    r"|[\x00-\x1f\x7f-\x9f]"
)
"""Control sequences as ECMA-48 has them."""
ENCODING_ERRORS = "jupyter_to_job"
"""Name of our error handler for characters that a terminal's encoding lacks."""


def make_safe() -> None:
    """Make stdout and stderr accept any text.

    A notebook may print characters that the terminal's encoding lacks. They must not end `logs`,
    so they are escaped; the undecodable bytes of a file name are printed as they are. Output to a
    stream that the caller closed (`>&-`) is discarded.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            null = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open
            setattr(sys, name, null)
    codecs.register_error(ENCODING_ERRORS, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ENCODING_ERRORS)


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    if all("\udc80" <= character <= "\udcff" for character in text):
        return text.encode("ascii", "surrogateescape"), error.end
    return codecs.backslashreplace_errors(error)


def write(text: str) -> None:
    """Write all of a text to stdout, however long it is, and flush it.

    With unbuffered output (`python -u`), `print` would lose what a single `write(2)` leaves over.
    """
    sys.stdout.flush()
    remaining = memoryview(text.encode(sys.stdout.encoding, ENCODING_ERRORS))
    while remaining:
        remaining = remaining[sys.stdout.buffer.write(remaining) :]
    sys.stdout.buffer.flush()


def flush() -> None:
    """Write buffered output while `BrokenPipeError` can still be caught."""
    sys.stdout.flush()


def discard_stdout() -> None:
    """Send further output to /dev/null: the interpreter's exit must not report a broken stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(text: str) -> str:
    """Return a text without control characters, which could change what a terminal shows."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def coloured(text: str) -> str:
    """Return a text whose only control sequences are colours, and what moves within a line."""
    return _SEQUENCE.sub(lambda match: match[0] if match["kept"] else "", text)


def has_colours() -> bool:
    """Tell whether stdout gets colours and bold text: a terminal does.

    Programs agree on two variables for it: NO_COLOR, which wins, and FORCE_COLOR for a pager.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def style(text: str, **styles: Any) -> str:
    """Return a text for stdout in click's styles, where stdout has colours; else as it is."""
    return click.style(text, **styles) if has_colours() else text


def print_styled(text: str) -> None:
    """Print a line of the answer with what `style` put into it."""
    click.echo(text, color=True)  # click would decide by the terminal alone


def print_line(text: str) -> None:
    """Print a line of the answer: as it is for a program, harmless on a terminal."""
    click.echo(plain(text) if sys.stdout.isatty() else text)


def print_note(text: str) -> None:
    """Print to stderr a line that is not the answer."""
    click.echo(plain(text), err=True)


def print_error(error: JobsError, subject: str | None = None) -> None:
    """Print an error and its hint. `subject`: which of several notebooks it concerns."""
    prefix = "" if subject is None or error.message.startswith(subject) else f"{subject}: "
    print_note(f"Error: {prefix}{error.message}")
    if error.hint:
        print_note(error.hint)
    if error.request_id:
        print_note(f"Request {error.request_id}: the controller's log has lines with it.")


def print_json(value: Any) -> None:
    """Print one JSON document."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # lone surrogates too: legal in JSON when escaped, never in UTF-8
        text = json.dumps(value, indent=2)
    write(f"{text}\n")
