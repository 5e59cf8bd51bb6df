"""How deep JSON may be nested here: one bound, held at every door.

Python's JSON gives up somewhere below a thousand levels, the sooner the deeper its caller stands:
what one process still wrote another may not be able to read, and a result never comes to be.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 200
_CONTAINERS = (dict, list, tuple)


def is_too_deep(value: Any, deepest: int = MAX_DEPTH) -> bool:
    """Tell whether lists and objects are nested in each other more than `deepest` levels deep."""
    level = [value] if isinstance(value, _CONTAINERS) and value else []
    for _ in range(deepest):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS) and inner
        ]
        if not level:
            return False
    return bool(level)
