"""Rules that every submission must meet, whatever the backend and the catalog are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from job_runner.protocol.journal.nesting import is_too_deep
from job_runner.protocol.parameters import find_unrepresentable

from .errors import BadInput
from .job import Submission

GROUP = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""The pattern of a group's name: it is also the value of a label on a cluster."""
_KEY = re.compile(r"[!-.0-~]{1,200}", re.ASCII)
MAX_DEPTH = 100
"""Levels of lists and mappings in parameters. The result contains them, and its readers have a
limit."""


def validate_submission(submission: Submission) -> None:
    """Raise BadInput for parameters, variables, groups and keys that no run can have."""
    require_key(submission.idempotency_key)
    check_parameters(submission.parameters)
    check_group(submission.group, submission.group_limit)
    for name, value in submission.env.items():
        if not name or "=" in name or not (is_plain(name) and is_plain(value)):
            # The message leaves out the value: it may be a secret.
            raise BadInput(f"The variable {name!r} cannot be set.", "Leave out `=` and NUL.")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for parameters that no run can have."""
    for name in parameters:
        if not name or any(character.isspace() for character in name):
            raise BadInput(
                f"{name!r} cannot be the name of a parameter.",
                "Write it as the notebook's `parameters` cell has it.",
            )
    if is_too_deep(parameters, MAX_DEPTH):
        raise BadInput(f"The parameters are nested deeper than {MAX_DEPTH}.", "Send a file along.")
    number = find_unrepresentable(parameters)
    if number is not None:
        raise BadInput(f"A parameter is {number}, which JSON does not have.", "Send it as text.")


def check_group(group: str | None, limit: int | None) -> None:
    """Raise BadInput for a group that no job can belong to, or a limit without a group."""
    if group is not None and not re.fullmatch(GROUP, group, re.ASCII):
        raise BadInput(
            f"{group!r} cannot be the name of a group.",
            "Take 1 to 63 letters, digits, `-`, `_` and `.`, the first and the last no sign.",
        )
    if limit is not None and (group is None or limit < 1):
        raise BadInput("A group's limit is at least 1 and needs a group.", "Name the group, too.")


def require_key(key: str | None) -> None:
    """Raise BadInput for an idempotency key without a character; None: no key was given."""
    if key == "":
        raise BadInput("The idempotency key is empty.", "Give it a text, or leave it out.")


def check_key(key: str) -> None:
    """Raise BadInput for an idempotency key that cannot be a header, or a part of an address."""
    if not _KEY.fullmatch(key):
        raise BadInput("An idempotency key is 1 to 200 printable characters of ASCII, without `/`.")


def is_plain(text: str) -> bool:
    """Tell whether the operating system accepts a text."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
