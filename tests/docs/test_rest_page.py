"""docs/rest.md has the sizes that the code takes, and says which problems block."""

from __future__ import annotations

import ast
import re

from job_runner.protocol.units import format_bytes
from jupyter_to_job.controller.gateway import READER_LIMITS
from jupyter_to_job.controller.intake.intake import MAX_SMALL, MAX_SUBMISSION
from jupyter_to_job.domain.errors import BY_CODE
from jupyter_to_job.server.body import MAX_BODY
from jupyter_to_job.service.reading.journal_reader import MAX_PARTIAL_JOURNAL
from jupyter_to_job.workspace.freezing.freeze import MAX_NOTEBOOK, MAX_SENT_NOTEBOOK

from .pages import ROOT, page

REST = page("docs/rest.md")
OF_CLUSTERS = "A cluster has these codes, too:"
YES, NO = frozenset([True]), frozenset([False])
BOTH = YES | NO
OF_REFUSALS = {"cluster_refuses": BOTH, "over_quota": BOTH}
"""Codes of what the API server refuses: whether they block depends on what it says."""


def test_sizes() -> None:
    facts = {row[0]: row[1] for row in REST.table("# REST")}
    of_server, of_gateway = facts["sizes"].split("A gateway takes")
    for size in (MAX_NOTEBOOK, MAX_BODY):
        assert f" {format_bytes(size)}" in of_server
    for size in (MAX_SENT_NOTEBOOK, MAX_SUBMISSION, MAX_SMALL):
        assert f" {format_bytes(size)}" in of_gateway
    assert READER_LIMITS.journal is not None
    assert f"over {format_bytes(MAX_PARTIAL_JOURNAL)}" in facts["results"]
    assert f"by a gateway over {format_bytes(READER_LIMITS.journal)}" in facts["results"]


def test_which_problems_block() -> None:
    documented: dict[str, frozenset[bool]] = {}
    for names, _, blocking in [*REST.table("## Preflight"), *REST.table(OF_CLUSTERS)]:
        for code in re.findall(r"`(\w+)`", names):
            is_blocking = {"yes": YES, "no": NO}.get(blocking, BOTH)
            documented[code] = documented.get(code, frozenset()) | is_blocking
    of_errors = {code: YES for code in documented if code in BY_CODE}
    assert documented == {**of_errors, **problems_in_code(), **OF_REFUSALS}


def problems_in_code() -> dict[str, frozenset[bool]]:
    """Return the codes that stand in the code where a problem is made, and whether it blocks."""
    found: dict[str, frozenset[bool]] = {}
    for path in (ROOT / "jupyter_to_job").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(
                    func=ast.Name("Problem" | "problem_of"),
                    args=[ast.Constant(str(code)), *_] | [_, ast.Constant(str(code))],
                ):
                    is_no = any(keyword.arg == "blocking" for keyword in call.keywords)
                    found[code] = found.get(code, frozenset()) | (NO if is_no else YES)
    return found
