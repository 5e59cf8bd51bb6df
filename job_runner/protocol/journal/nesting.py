"""How deep JSON may be nested: one bound for everything that comes in.

Python's JSON fails somewhere below a thousand levels, the sooner the deeper the call stack is. So
one process could write what another one cannot read, and a run would have no result.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 200
_CONTAINERS = (dict, list, tuple)


def is_too_deep(value: Any, max_depth: int = MAX_DEPTH) -> bool:
    """Tell whether lists and objects are nested in each other more than `max_depth` levels deep."""
    level = [value] if isinstance(value, _CONTAINERS) and value else []
    for _ in range(max_depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS) and inner
        ]
        if not level:
            return False
    return bool(level)
