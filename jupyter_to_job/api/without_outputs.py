"""A result without its outputs: a page that cannot hold all of it shows at least its code.

Results are in nbformat's layout, where each output has lines of its own. So they are left out line
by line, and nothing is parsed or in memory, whatever the size.
"""

from __future__ import annotations

import tempfile
from typing import BinaryIO, cast

from ..domain.errors import no_room

OMITTED = "application/vnd.jupyter-to-job.omitted+json"
"""The MIME type of what stands for the outputs of a cell: `{"bytes": their size}`."""
_PIECE = 1 << 20
_ENDS = {b'   "outputs": [\n': b"   ]", b'  "widgets": {\n': b"  }"}
"""The first line of what is left out, with its last one: outputs of a cell, the widgets' state."""


def without_outputs(file: BinaryIO) -> BinaryIO:
    """Return a copy of a result in an unnamed file, and close the result.

    Raises Unavailable if there is no room.
    """
    try:
        copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
        with file:
            _copy(file, copy)
        copy.seek(0)
    except OSError as error:
        raise no_room("The notebook cannot be put together without its outputs", error) from error
    return copy


def _copy(file: BinaryIO, copy: BinaryIO) -> None:
    end, size, is_start = b"", 0, True
    while piece := file.readline(_PIECE):
        if end and is_start and piece.rstrip(b",\n") == end:
            comma = b"," if piece.endswith(b",\n") else b""
            copy.write(_substitute(end, size) + comma + b"\n")
            end = b""
        elif end:
            size += len(piece)
        elif is_start and piece in _ENDS:
            end, size = _ENDS[piece], 0
        else:
            copy.write(piece)
        is_start = piece.endswith(b"\n")


def _substitute(end: bytes, size: int) -> bytes:
    if end == b"  }":
        return b'  "widgets": {}'
    output = (
        f'{{"data": {{"{OMITTED}": {{"bytes": {size}}}, "text/plain": "[outputs left out]"}}, '
        '"metadata": {}, "output_type": "display_data"}'
    )
    return f'   "outputs": [{output}]'.encode()
