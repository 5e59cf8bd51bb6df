"""Pictures that a notebook recorded as metrics: their bytes are in the result and nowhere else."""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from job_runner.protocol.metrics import TAG

from ..domain.errors import NotFound

MAX_RESULT = 8 << 20
"""Bytes of a result in which a picture is looked for: while it is parsed nobody is answered."""
_KINDS = ("image/png", "image/svg+xml", "image/jpeg")
_MARKS = ("scrapbook", "papermill")
"""The fields of an output's metadata in which scrapbook and older papermill name a metric."""


class Picture(NamedTuple):
    """A picture's MIME type and its bytes."""

    kind: str
    data: bytes


def find_picture(result: BinaryIO, metric: str) -> Picture:
    """Return the last picture that a result shows for a metric. Raises NotFound."""
    try:
        document = json.load(result)
    except (ValueError, RecursionError) as error:
        raise NotFound(f"The result cannot be read: {error}.") from error
    picture = None
    for output in _outputs(document, metric):
        picture = _picture_in(output.get("data")) or picture
    if picture is None:
        raise NotFound(f"The result shows no picture of {metric!r}.")
    return picture


def _outputs(document: Any, metric: str) -> Iterator[dict[str, Any]]:
    """Yield the outputs that show a metric, in the order of the cells."""
    for cell in document.get("cells", ()):
        metadata = cell.get("metadata") or {}
        is_tagged = f"{TAG}{metric}" in (metadata.get("tags") or ())
        for output in cell.get("outputs") or ():
            if is_tagged or _is_marked(output.get("metadata") or {}, metric):
                yield output


def _is_marked(metadata: dict[str, Any], metric: str) -> bool:
    marks = (metadata.get(field) for field in _MARKS)
    return any(isinstance(mark, dict) and mark.get("name") == metric for mark in marks)


def _picture_in(data: Any) -> Picture | None:
    """Return the picture of an output's data; None if there is none, or it is no picture."""
    for kind in _KINDS:
        content = (data or {}).get(kind)
        if content is None:
            continue
        text = "".join(content) if isinstance(content, list) else str(content)
        if kind == "image/svg+xml":
            return Picture(kind, text.encode(errors="replace"))
        try:
            return Picture(kind, binascii.a2b_base64(text.encode()))
        except (ValueError, UnicodeEncodeError):
            continue
    return None
