"""What to say of a name that does not exist: which names do, and which of them is nearest."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from .errors import UnknownChoice

_MAX_COMPARED = 100
"""Characters of a name that are compared: comparing takes the square of its length."""


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that was probably meant by `name`, if any."""
    return next(iter(get_close_matches(name[:_MAX_COMPARED], list(names), n=1)), None)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a hint: the name that was probably meant, and all that exist."""
    choices = sorted(names)
    if len(choices) == 1:
        return f"There is only {choices[0]!r}."
    nearest = nearest_name(name, choices)
    question = f"Did you mean {nearest!r}? " if nearest else ""
    return f"{question}Choose one of: {', '.join(choices)}."


def no_flavor(name: str, flavors: Iterable[str]) -> UnknownChoice:
    """Return the error for a flavor that a catalog with these flavors does not have."""
    return UnknownChoice(f"There is no flavor {name!r}.", did_you_mean(name, flavors))


def no_device(name: str, flavor: str, devices: Iterable[str]) -> UnknownChoice:
    """Return the error for a device that a flavor with these devices does not have."""
    return UnknownChoice(f"Flavor {flavor!r} has no device {name!r}.", did_you_mean(name, devices))
