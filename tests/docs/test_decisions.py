"""Decision records have one format and one numbering, and the index lists each of them."""

from __future__ import annotations

import re

import pytest

from .pages import DOCS, ROOT, Page, page

INDEX = page("docs/decisions/README.md")
RECORDS = [Page(path) for path in sorted((DOCS / "decisions").glob("0*.md"))]
SECTIONS = ["Context", "Decision", "Alternatives", "Consequences"]


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_each_has_the_format(record: Page) -> None:
    title, empty, status, *_ = record.text.splitlines()
    assert re.match(rf"# {int(record.path.name[:4])}\. \S", title)
    assert not empty
    assert re.match(r"Status: (accepted|superseded by \[\d+\]\(\S+\)), \d{4}-\d\d", status)
    assert re.findall(r"^## (.+)$", record.prose, re.MULTILINE) == SECTIONS


def test_the_index_lists_them_in_order() -> None:
    listed = [
        f"| {int(r.path.name[:4])} | [{r.text.splitlines()[0].partition('. ')[2]}]({r.path.name}) |"
        for r in RECORDS
    ]
    assert [line for line in INDEX.text.splitlines() if re.match(r"\| \d", line)] == listed


def test_every_number_is_used_once_or_accounted_for() -> None:
    numbers = [int(record.path.name[:4]) for record in RECORDS]
    assert len(numbers) == len(set(numbers))
    for number in set(range(1, max(numbers) + 1)) - set(numbers):
        assert re.search(rf"\b{number} \(", INDEX.text), f"the index does not mention {number}"


def test_code_names_records_that_exist() -> None:
    sources = (p for name in ("jupyter_to_job", "job_runner") for p in (ROOT / name).rglob("*.py"))
    named = {
        name
        for source in sources
        for name in re.findall(r"docs/decisions/([\w-]+\.md)", source.read_text(encoding="utf-8"))
    }
    assert named <= {record.path.name for record in RECORDS}
