"""What to say to somebody who asked for a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(asked: str, names: Iterable[str]) -> str:
    """Return a hint: the name that was probably meant, and all that there are."""
    known = sorted(names)
    near = get_close_matches(asked[:100], known, n=1)
    if len(known) == 1:
        return f"There is only {known[0]!r}."
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return f"{meant}Choose one of: {', '.join(known)}."
