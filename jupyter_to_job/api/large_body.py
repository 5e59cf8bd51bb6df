"""Splits large bodies in a subprocess.

Python parses and writes JSON with its lock held: a thread that parses 200 MB would keep the server
from answering other requests for a second. This file runs as a script and imports nothing but the
standard library, so that the process starts in some hundredths of a second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any, BinaryIO

LARGE = 1 << 20
"""Bodies of more bytes than this are parsed in a subprocess."""
_CONTENT = "content"
_FAULT = 65
_NO_ROOM = 74


def dump(notebook: dict[str, Any]) -> bytes:
    """Return an open document as bytes, always the same for the same one. Raises ValueError."""
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def split_body(body: BinaryIO) -> tuple[bytes, bytes | None]:
    """Return a body without its `content`, and the content as bytes to freeze.

    Raises ValueError if the body is no JSON object, or is large even without the content; OSError
    where there is no room for a copy.
    """
    body.seek(0)
    with tempfile.TemporaryFile() as content:
        ran = subprocess.run(
            [sys.executable, "-I", __file__, str(content.fileno())],
            stdin=body,
            capture_output=True,
            pass_fds=[content.fileno()],
            cwd="/",
            check=False,
        )
        if ran.returncode == _FAULT:
            raise ValueError(ran.stderr.decode(errors="replace").strip())
        if ran.returncode == _NO_ROOM:
            raise OSError(ran.stderr.decode(errors="replace").strip())
        if ran.returncode != 0:  # most likely killed: it holds the whole body in memory
            from ..domain.errors import TooLarge  # the script itself has no package

            raise TooLarge(
                f"The body could not be taken apart (exit status {ran.returncode}).",
                "Clear the notebook's outputs and submit again.",
            )
        # The content has a file of its own: one read from the start copies nothing through a
        # buffer, which would take 200 MB with Python's lock held.
        content.seek(0)
        return ran.stdout, content.read() or None


def _main(descriptor: int) -> int:
    """Read a body from stdin; write its content to the descriptor, all other fields to stdout."""
    try:
        document = json.load(sys.stdin.buffer)
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        content = document.get(_CONTENT)
        if isinstance(content, dict):
            del document[_CONTENT]
        body = json.dumps(document).encode()
        if len(body) > LARGE:
            raise ValueError(f"but for a notebook's content it may have {LARGE >> 20} MiB")
        sys.stdout.buffer.write(body)
        if isinstance(content, dict):
            with open(descriptor, "wb") as file:
                file.write(dump(content))
    except (ValueError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        return _FAULT
    except OSError as error:
        sys.stderr.write(f"{error.strerror}\n")
        return _NO_ROOM
    return 0


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
