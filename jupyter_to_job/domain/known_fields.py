"""Reads the parts of an answer that crossed REST: the other side may be newer, and have sent more.

Documents of the exchange are read strictly, by `job_runner.protocol.fields`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def known_fields(cls: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a document that a dataclass has: it ignores those of a newer version."""
    return {f.name: document[f.name] for f in fields(cls) if f.name in document}
