"""The journal under every cut and every flipped byte."""

from __future__ import annotations

import threading
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from job_runner.protocol.journal import journal
from job_runner.protocol.journal.journal import JournalWriter, read_journal
from job_runner.protocol.journal.nesting import MAX_DEPTH, is_too_deep

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
records = st.lists(
    st.fixed_dictionaries({"k": st.sampled_from(["output", "new kind"]), "v": values}), max_size=6
)
on_disk = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def write(folder: Path, content: list[dict[str, Any]]) -> Path:
    """A journal with these records; the path of its only segment."""
    for old in folder.glob("*"):
        old.unlink()
    writer = JournalWriter(folder)
    for record in content:
        writer.append(record)
    writer.close()
    return folder / "00000001.jsonl"


def read(folder: Path, offset: int = 0) -> list[dict[str, Any]]:
    return [entry.record for entry in read_journal(folder, offset)]


@on_disk
@given(content=records, data=st.data())
def test_a_cut_reads_as_the_longest_whole_prefix(
    tmp_path: Path, content: list[dict[str, Any]], data: st.DataObject
) -> None:
    segment = write(tmp_path, content)
    whole = segment.read_bytes() if content else b""
    cut = data.draw(st.integers(0, len(whole)))
    segment.write_bytes(whole[:cut])
    assert read(tmp_path) == content[: whole[:cut].count(b"\n")]


@on_disk
@given(content=records.filter(bool), data=st.data())
def test_a_changed_byte_never_invents(
    tmp_path: Path, content: list[dict[str, Any]], data: st.DataObject
) -> None:
    segment = write(tmp_path, content)
    raw = bytearray(segment.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    segment.write_bytes(raw)
    seen = read(tmp_path)
    assert all(record in content for record in seen if record["k"] != "damaged")
    hit = bytes(raw[:at]).count(b"\n")
    assert seen[:hit] == content[:hit]
    assert len([r for r in seen if r["k"] != "damaged"]) >= len(content) - 2


@on_disk
@given(content=records)
def test_every_offset_that_was_told_is_a_place_to_go_on(
    tmp_path: Path, content: list[dict[str, Any]]
) -> None:
    write(tmp_path, content)
    entries = list(read_journal(tmp_path))
    assert [e.offset for e in entries] == [0, *(e.end for e in entries)][: len(entries)]
    for index, entry in enumerate(entries):
        assert read(tmp_path, entry.end) == content[index + 1 :]
    assert journal.journal_size(tmp_path) == (entries[-1].end if entries else 0)


def test_segments_are_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 100)
    content = [{"k": "output", "n": n} for n in range(20)]
    write(tmp_path, content)
    assert len(list(tmp_path.iterdir())) > 5
    assert read(tmp_path) == content
    for entry in read_journal(tmp_path):
        assert read(tmp_path, entry.offset)[0] == entry.record


def test_a_second_writer_begins_a_segment(tmp_path: Path) -> None:
    segment = write(tmp_path, [{"k": "one"}])
    with segment.open("ab") as file:
        file.write(b"torn")
    assert read(tmp_path) == [{"k": "one"}]
    writer = JournalWriter(tmp_path)
    writer.append({"k": "two"})
    writer.close()
    assert read(tmp_path) == [{"k": "one"}, {"k": "damaged", "bytes": 4}, {"k": "two"}]


def test_a_line_is_readable_by_eye(tmp_path: Path) -> None:
    line = write(tmp_path, [{"k": "output", "text": "é"}]).read_text()
    checksum, _, body = line.partition(" ")
    assert body == '{"k":"output","text":"é"}\n'
    assert len(checksum) == 8


def test_surrogates_survive(tmp_path: Path) -> None:
    write(tmp_path, [{"k": "output", "text": "\ud800"}])
    assert read(tmp_path) == [{"k": "output", "text": "\ud800"}]


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == []
    assert journal.journal_size(tmp_path / "none") == 0


def test_syncing_beside_appending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments come and go under a thread that syncs all the time."""
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 2000)
    writer = JournalWriter(tmp_path)
    done = threading.Event()
    errors: list[BaseException] = []

    def sync() -> None:
        try:
            while not done.is_set():
                writer.sync()
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=sync)
    thread.start()
    for n in range(2000):
        writer.append({"k": "output", "n": n})
    done.set()
    thread.join()
    writer.close()
    assert errors == []
    assert [r["n"] for r in read(tmp_path)] == list(range(2000))


@pytest.mark.parametrize("levels", [300, 100_000])
def test_what_nobody_could_write_again_is_damaged(tmp_path: Path, levels: int) -> None:
    """Whole by its checksum; but a result that it is part of could not be written."""
    body = b'{"k": "widget", "state": %s}' % (b"[" * levels + b"]" * levels)
    line = b"%08x %s\n" % (zlib.crc32(body), body)
    with write(tmp_path, [{"k": "one"}]).open("ab") as segment:
        segment.write(line)
    assert read(tmp_path) == [{"k": "one"}, {"k": "damaged", "bytes": len(line)}]


def test_as_deep_as_the_doors_allow_is_read(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert not is_too_deep(value) and is_too_deep([value])
    record = {"k": "widget", "state": {"value": value}}
    write(tmp_path, [record])
    assert read(tmp_path) == [record]


def stream(number: int, text: str) -> dict[str, Any]:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return {"t": 1.5, "k": "output", "i": number, "output": output}


def test_what_output_does_not_concern_need_not_be_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_READ_SIZE", 300)
    content = [
        {"t": 1.0, "k": "prepared", "cells_total": 1, "notebook": {"long": "x" * 500}},
        stream(3, "short"),
        stream(3, "long" * 100),
        {"t": 2.0, "k": "cell_end", "i": 3, "ok": True},
    ]
    lengths = [len(journal.encode(record)) for record in content]
    write(tmp_path, content)
    entries = list(read_journal(tmp_path, skip_outputs=True))
    assert [e.end - e.offset for e in entries] == lengths
    omitted = {"k": "omitted", "of": "output", "t": 1.5, "i": 3}
    assert [e.record for e in entries] == [
        content[0],
        {**omitted, "bytes": lengths[1]},
        {**omitted, "bytes": lengths[2]},
        content[3],
    ]
    entries = list(read_journal(tmp_path, max_line=300))
    assert [e.end - e.offset for e in entries] == lengths
    assert [e.record.get("of") for e in entries] == ["prepared", None, "output", None]
    assert [entries[1].record, entries[3].record] == [content[1], content[3]]


@on_disk
@given(
    content=st.lists(st.builds(stream, st.just(0), st.text(max_size=90)), min_size=1),
    data=st.data(),
)
def test_damage_shows_when_output_is_passed_by(
    tmp_path: Path, content: list[dict[str, Any]], data: st.DataObject
) -> None:
    """However a journal is read: the same lines, and the same ones of them damaged."""
    segment = write(tmp_path, content)
    raw = bytearray(segment.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    segment.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])

    def seen(**how: Any) -> list[tuple[int, bool]]:
        entries = read_journal(tmp_path, **how)
        return [(entry.end, entry.record["k"] == "damaged") for entry in entries]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_READ_SIZE", data.draw(st.integers(80, 200)))
        assert seen() == seen(skip_outputs=True) == seen(max_line=data.draw(st.integers(80, 200)))


def test_a_number_that_nobody_can_read_stops_no_reader(tmp_path: Path) -> None:
    body = b'{"t":1.0,"k":"output","i":%s}' % (b"9" * 5000)
    (tmp_path / "00000001.jsonl").write_bytes(b"%08x %s\n" % (zlib.crc32(body), body))
    for how, kind in (
        ({}, "damaged"),
        ({"skip_outputs": True}, "omitted"),
        ({"max_line": 99}, "omitted"),
    ):
        (entry,) = read_journal(tmp_path, **how)
        assert entry.record["k"] == kind


def test_a_long_line_is_never_in_memory(tmp_path: Path) -> None:
    size = 30 << 20
    write(tmp_path, [stream(0, "x" * size), {"k": "cell_end"}])
    tracemalloc.start()
    try:
        for how in ({"skip_outputs": True}, {"max_line": 1 << 20}):
            first, second = read_journal(tmp_path, **how)
            assert first.record["bytes"] > size and second.record == {"k": "cell_end"}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 << 20
