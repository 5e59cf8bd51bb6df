"""Requests and responses of the routes, without a web framework."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
from collections.abc import Awaitable, Generator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO, Protocol

from ..domain.errors import BadInput
from ..exchange.uploads import Upload

CHUNK = 256 << 10
"""Bytes that are handed to the network at a time: other requests are answered in between."""
_INTEGER = re.compile(r"-?[0-9]{1,16}", re.ASCII)


@dataclass(frozen=True)
class ApiRequest:
    """One request; `path` is relative to the API's root, without a leading slash.

    `large` is a body that is too large to hold in memory or to parse in this process. `upload` is
    the whole body at a gateway, whose `body` has it only if it is small.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    large: BinaryIO | None = None
    upload: Upload | None = None

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object; an empty body is an empty one. Raises BadInput."""
        try:
            document = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadInput(f"The body is no JSON: {error}.") from error
        if not isinstance(document, dict):
            raise BadInput("The body is no JSON object.")
        return document

    def integer(self, name: str, default: int) -> int:
        """Return a query parameter as an integer. Raises BadInput."""
        text = self.query.get(name)
        if text is None:
            return default
        if not _INTEGER.fullmatch(text):
            raise BadInput(f"{name} is no integer.")
        return int(text)


class Writer(Protocol):
    """The part of a web framework's handler that sends a body in chunks."""

    def write(self, chunk: bytes, /) -> object:
        """Add a chunk to the body."""
        ...

    def flush(self) -> Awaitable[None]:
        """Send what was written."""
        ...


@dataclass(frozen=True)
class ApiResponse:
    """One response: `body`, or the content of `file` from its position on, which may be large."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None

    @cached_property
    def length(self) -> int:
        """The bytes to send: of a file as many as it has when this is read for the first time."""
        if self.file is None:
            return len(self.body)
        position = self.file.tell()
        length = self.file.seek(0, os.SEEK_END) - position
        self.file.seek(position)
        return max(0, length)

    def chunks(self, size: int = CHUNK) -> Generator[bytes, None, None]:
        """Yield `length` bytes in chunks of at most `size`, and close the file."""
        remaining = self.length
        with self.file or io.BytesIO(self.body) as source:
            while remaining and (chunk := source.read(min(size, remaining))):
                remaining -= len(chunk)
                yield chunk

    async def stream(self, writer: Writer, pool: Executor) -> None:
        """Write the response in chunks: they are read in `pool`, as fast as the client reads."""
        loop = asyncio.get_running_loop()
        with contextlib.closing(self.chunks()) as chunks:
            while chunk := await loop.run_in_executor(pool, next, chunks, b""):
                writer.write(chunk)
                await writer.flush()

    @classmethod
    def json(cls, status: int, document: Any, **headers: str) -> ApiResponse:
        """Return a JSON response."""
        try:
            body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # lone surrogates: legal in JSON when escaped, never in UTF-8
            body = json.dumps(document, separators=(",", ":")).encode()
        return cls(status, body, headers=headers)
