"""What a delivered job's directory holds is what docs/protocol.md says."""

from __future__ import annotations

import json

from job_runner.protocol.journal import journal

from ..protocol_page import document_fields, record_fields
from .place import Place


def test_documents(shared: Place) -> None:
    directory = shared.exchange.directory(shared.the_job().name)
    files = {
        "request.json": document_fields("### request.json"),
        "attempt-1/outcome.json": document_fields("### outcome.json"),
        "attempt-1/runner.json": {"host", "boot_id", "pid", "start_time"},
        "delivery.json": {"path", "sha256", "time"},
    }
    for name, fields in files.items():
        document = json.loads((directory / name).read_text())
        assert document.pop("v") == 1
        assert set(document) == set(fields), name


def test_records(shared: Place) -> None:
    described = record_fields()
    directory = shared.exchange.directory(shared.the_job().name) / "attempt-1" / "journal"
    records = [entry.record for entry in journal.read_journal(directory)]
    assert {"prepared", "cell_start", "output", "cell_end"} <= {r["k"] for r in records}
    for record in records:
        fields = described[record["k"]]
        seen = set(record) - {"k"}
        assert seen - {"t"} >= fields.required, record["k"]
        assert seen <= fields.required | fields.optional | {"t"}, record["k"]
        assert "t" in seen
