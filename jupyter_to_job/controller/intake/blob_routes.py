"""The gateway's routes to blobs: whole ones, and the pieces of large ones.

`Content-Range` says which bytes of a blob a `PUT` has, as HTTP writes it. `bytes */SIZE`, without a
body, asks how many bytes of it are here.
"""

from __future__ import annotations

import re
from pathlib import Path

from job_runner.protocol.units import format_bytes

from ...api import ApiRequest, ApiResponse
from ...domain.errors import BadInput, TooLarge
from ...exchange.uploads import Upload
from ..callers.identity import DevPod
from .blobs import Blobs
from .budgets import Budgets

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})", re.ASCII)


def handle_blob(
    exchange: Path, budgets: Budgets, caller: DevPod, request: ApiRequest
) -> ApiResponse:
    """Store a blob or a piece of it, or tell whether it is there: `length` is what is here now.

    Raises BadInput, WrongOffset, Stale for a `HEAD` of a blob that is not there; TooLarge and
    StorageFull where a blob of that size has no room.
    """
    blobs = Blobs(exchange, caller.owner)
    digest = request.path.removeprefix("blobs/")
    if not _SHA256.fullmatch(digest):
        raise BadInput("A blob is named by its SHA-256 in 64 hexadecimal digits.")
    if request.method == "HEAD":
        size = blobs.path(digest).stat().st_size
        return ApiResponse(200, headers={"Content-Length": str(size)})
    upload = request.upload or Upload.of(request.body)
    if "Content-Range" in request.headers:
        length = _put_piece(blobs, budgets, caller.owner, digest, request, upload)
    else:
        blobs.put(digest, upload)
        length = upload.size
    return ApiResponse.json(200, {"length": length})


def _put_piece(
    blobs: Blobs, budgets: Budgets, owner: str, digest: str, request: ApiRequest, upload: Upload
) -> int:
    match = _RANGE.fullmatch(request.headers["Content-Range"])
    if match is None:
        raise BadInput("Content-Range is none of `bytes FIRST-LAST/SIZE` and `bytes */SIZE`.")
    start, end, total = match[1], match[2], int(match[3])
    if total > budgets.caps.inputs:
        raise TooLarge(f"A file is at most {format_bytes(budgets.caps.inputs)}.", "Send less.")
    if start is None:
        length = blobs.received(digest, total)
        budgets.require_room(owner, max(0, total - length))
        return length
    if int(end) - int(start) + 1 != upload.size:
        raise BadInput("The body has another length than its Content-Range.")
    return blobs.append(digest, total, int(start), upload)
