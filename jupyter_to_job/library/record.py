"""Records a metric in the running notebook, as display data in scrapbook's format.

It needs nothing but IPython, which every Python kernel has. Scrapbook reads what it records.
"""

from __future__ import annotations

import json
import math
from typing import Any

_SCRAP = "application/scrapbook.scrap.json+json"


def record(name: str, value: Any) -> None:
    """Record a number, a text, a small list or mapping, or a picture under a name.

    A value that was recorded under this name before is replaced. A picture is anything that a cell
    shows as one, such as a figure of Matplotlib, and it is shown. Outside of IPython nothing is
    recorded. Raises TypeError for a value that is none of these.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    is_plain, plain = _plain(value)
    if is_plain:
        payload = {"name": name, "data": plain, "encoder": "json", "version": 1}
        marks = {"scrapbook": {"name": name, "data": True, "display": False}}
        shell.display_pub.publish({_SCRAP: payload}, marks)
        return
    assert shell.display_formatter is not None  # only while the shell is made
    data, metadata = shell.display_formatter.format(value)
    if not any(kind.startswith("image/") for kind in data):
        kind = type(value).__name__
        raise TypeError(f"{name}: {kind} is neither a number, nor text, nor shown as a picture.")
    marks = {**metadata, "scrapbook": {"name": name, "data": False, "display": True}}
    shell.display_pub.publish(data, marks)


def _plain(value: Any) -> tuple[bool, Any]:
    """Tell whether a value can be JSON, and return it as JSON has it: NaN becomes null."""
    for convert in ("item", "tolist"):  # numbers and arrays of NumPy and its kin
        if not isinstance(value, str | int | float | list | dict) and hasattr(value, convert):
            try:
                value = getattr(value, convert)()
            except (ValueError, TypeError, RuntimeError):  # it has several items
                continue
    if isinstance(value, float) and not math.isfinite(value):
        return True, None
    try:
        return True, json.loads(json.dumps(value), parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError):
        return False, value
