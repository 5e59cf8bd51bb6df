"""A request and a response as the routes see them: no web framework."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO

from ..domain.errors import BadInput

_INTEGER = re.compile(r"-?[0-9]{1,16}", re.ASCII)


@dataclass(frozen=True)
class ApiRequest:
    """One request; `path` is relative to the API's root, without a leading slash.

    `large` is a body that is too much to hold in memory or to take apart in this process.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    large: BinaryIO | None = None

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


@dataclass(frozen=True)
class ApiResponse:
    """One response; `body` is sent as it is, or `file` from where it stands: it may be large."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None

    @cached_property
    def length(self) -> int:
        """How many bytes there are to send: what a file has when this is asked first."""
        if self.file is None:
            return len(self.body)
        at = self.file.tell()
        length = self.file.seek(0, os.SEEK_END) - at
        self.file.seek(at)
        return max(0, length)

    def pieces(self, size: int) -> Generator[bytes, None, None]:
        """Yield what there is to send, and close the file: as much as there is of it now."""
        left = self.length
        with self.file or io.BytesIO(self.body) as source:
            while left and (piece := source.read(min(size, left))):
                left -= len(piece)
                yield piece

    @classmethod
    def json(cls, status: int, document: Any, **headers: str) -> ApiResponse:
        """Return a JSON response."""
        try:
            body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # lone surrogates: legal in JSON when escaped, never in UTF-8
            body = json.dumps(document, separators=(",", ":")).encode()
        return cls(status, body, headers=headers)
