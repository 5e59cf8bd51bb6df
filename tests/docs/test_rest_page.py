"""docs/rest.md has the sizes that the code takes."""

from __future__ import annotations

from job_runner.protocol.units import format_bytes
from jupyter_to_job.controller.gateway import READER_LIMITS
from jupyter_to_job.controller.intake.intake import MAX_SMALL, MAX_SUBMISSION
from jupyter_to_job.server.body import MAX_BODY
from jupyter_to_job.service.reading.journal_reader import MAX_PARTIAL_JOURNAL
from jupyter_to_job.workspace.freezing.freeze import MAX_NOTEBOOK, MAX_SENT_NOTEBOOK

from .pages import page

REST = page("docs/rest.md")


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
