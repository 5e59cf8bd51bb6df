"""Files and Python names that the pages mention exist: a rename that forgets a page fails here."""

from __future__ import annotations

import importlib
import re

import pytest

from .pages import PAGES, ROOT, Page

_PATH = re.compile(r"[\w.-]+/[\w./-]+\.(?:py|tsx?|js|toml|yaml|yml|sh)")
_NAME = re.compile(r"(?:job_runner|jupyter_to_job)(?:\.\w+)+")
_BASES = (
    ROOT,
    ROOT / "jupyter_to_job",
    ROOT / "job_runner",
    ROOT / "labextension/src",
    ROOT / "docs",
)
"""Pages say `domain/job.py` where the package is clear."""
_METADATA = ("jupyter_to_job.usage", "jupyter_to_job.provenance")
"""Keys in the metadata of notebooks."""


def missing_names(page: Page) -> list[str]:
    """Return the names in a page's code spans that nothing in the repository has."""
    return [
        span
        for span in page.spans
        if (_PATH.fullmatch(span) and not _exists(span, page))
        or (_NAME.fullmatch(span) and span not in _METADATA and not _resolves(span))
    ]


def _exists(path: str, page: Page) -> bool:
    return any((base / path).exists() for base in (*_BASES, page.path.parent))


def _resolves(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_name_exists(page: Page) -> None:
    assert missing_names(page) == []


def test_a_missing_name_is_found() -> None:
    assert _resolves("job_runner.protocol.layout.OUTCOME")
    assert not _resolves("job_runner.protocol.layout.NOTHING")
    assert not _resolves("job_runner.nothing")
