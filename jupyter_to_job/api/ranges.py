"""Answers with a file, or with the rest of it: so a client resumes what was cut off.

Only ranges of the form `bytes=N-` count. Any other one is answered with the whole file, which HTTP
allows.
"""

from __future__ import annotations

import os
import re
from typing import BinaryIO

from .http import ApiRequest, ApiResponse

_RANGE = re.compile(r"bytes=(\d{1,18})-", re.ASCII)


def file_response(
    request: ApiRequest, file: BinaryIO, sha256: str | None, content_type: str
) -> ApiResponse:
    """Return the answer to a GET of a file, of which `sha256` is the digest.

    Without a digest there are no ranges: the file may be another one at the next request.
    """
    if sha256 is None:
        return ApiResponse(200, b"", content_type, file=file)
    etag = f'"{sha256}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes"}
    match = _RANGE.fullmatch(request.headers.get("Range", ""))
    if match is None or request.headers.get("If-Range", etag) != etag:
        return ApiResponse(200, b"", content_type, headers, file)
    size, start = os.fstat(file.fileno()).st_size, int(match[1])
    if start >= size:
        file.close()
        return ApiResponse(416, b"", content_type, {**headers, "Content-Range": f"bytes */{size}"})
    file.seek(start)
    headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
    return ApiResponse(206, b"", content_type, headers, file)
