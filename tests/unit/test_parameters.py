"""`-p`, `-r` and `--params-file`: values keep the type that people meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.iorw import read_yaml_file

from job_runner.protocol.parameters import parse_default
from jupyter_to_job.cli.arguments.parameters import collect_parameters
from jupyter_to_job.domain.errors import BadInput


def typed(text: str) -> Any:
    return collect_parameters(None, [("x", text)], [])["x"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("-5", -5), ("1e3", 1000.0), ("0.5", 0.5), ("true", True), ("false", False),
        ("null", None), ('[1, "a"]', [1, "a"]), ('{"a": {"b": null}}', {"a": {"b": None}}),
        ('"5"', "5"), ("True", True), ("False", False), ("None", None), ("text", "text"), ("", ""),
        ("007", "007"), ("1_000", "1_000"), ("TRUE", "TRUE"), ("NaN", "NaN"),
        ("Infinity", "Infinity"), ("'a'", "'a'"), ("[1,", "[1,"), ("0x10", "0x10"), ("é", "é"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_value(text: str, value: Any) -> None:
    assert typed(text) == value
    assert type(typed(text)) is type(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(json_values)
def test_all_json_arrives(value: Any) -> None:
    assert typed(json.dumps(value)) == value


@given(st.text())
def test_raw_is_always_text(text: str) -> None:
    assert collect_parameters(None, [("x", "5")], [("x", text)]) == {"x": text}


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "parameters.yaml"
    file.write_text(
        "epochs: 3\nname: night\nrates: [0.1, 1e-3]\nfrom: 2026-11-21\nok: yes\n1: one\n"
    )
    assert collect_parameters(file, [("epochs", "5")], [("name", "5")]) == {
        "epochs": 5,
        "name": "5",
        "rates": [0.1, "1e-3"],
        "from": "2026-11-21",
        "ok": True,
        "1": "one",
    }


def test_a_json_file(tmp_path: Path) -> None:
    file = tmp_path / "parameters.json"
    file.write_text('{\n\t"epochs": 3, "name": null, "rate": 1e-05, "date": "2026-11-21"}')
    assert collect_parameters(file, [], []) == {
        "epochs": 3, "name": None, "rate": 1e-05, "date": "2026-11-21",
    }  # fmt: skip


def test_keys_of_yaml_become_text(tmp_path: Path) -> None:
    file = tmp_path / "parameters.yaml"
    file.write_text("2026-11-21: 1\ndeep: [{2026-11-21: x, 1: y, false: z}]\n")
    assert collect_parameters(file, [], []) == {
        "2026-11-21": 1,
        "deep": [{"2026-11-21": "x", "1": "y", "false": "z"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T10:00:00Z", "2026-01-02T10:00:00", "2026-01-02t10:00:00.5+02:00",
        "2026-1-2 10:00:00 -5", "2026-01-02", "2026-13-45",
    ],
)  # fmt: skip
def test_a_time_in_yaml_stays_as_it_was_written(tmp_path: Path, text: str) -> None:
    """As papermill's own file of parameters has it."""
    file = tmp_path / "parameters.yaml"
    file.write_text(f"since: {text}\ndays: [{text}]\nnamed: {{? {text} : x}}\n")
    expected = {"since": text, "days": [text], "named": {text: "x"}}
    assert collect_parameters(file, [], []) == read_yaml_file(str(file)) == expected


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: &a [*a]", "holds itself"),
        ("&a {b: *a}", "holds itself"),
        ("a: " + "[" * 3000, "nested deeper"),
        ('{"a": ' + "[" * 100_000, "nested deeper"),
        ('{"a": NaN}', "nan, which JSON does not have"),
        ('{"a": [1e999]}', "inf, which JSON does not have"),
        ("a: 0x" + "f" * 9000, "neither YAML nor JSON"),
        ("a: !!int ''", "neither YAML nor JSON"),
        ("a: !!timestamp today", "neither YAML nor JSON"),
    ],
    ids=lambda text: text[:20],
)
def test_a_file_that_json_cannot_hold(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "parameters.yaml"
    file.write_text(content)
    with pytest.raises(BadInput, match=says):
        collect_parameters(file, [], [])


@pytest.mark.parametrize("content", ["- 1", "5", "a: [", "a: *b", b"\xff\xfe\x00"])
def test_a_file_that_holds_no_parameters(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "parameters.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(BadInput):
        collect_parameters(file, [], [])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="missing"):
        collect_parameters(tmp_path / "missing.yaml", [], [])


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("True", True), ("None", None), ("'a\\'b'", "a'b"), ('"tab\\t"', "tab\t"), ("'\\x41'", "A"),
        ("1_000", 1000), ("-1.5e3", -1500.0), ("[1, 'two', [None,],]", [1, "two", [None]]),
        ("(1, 2)", (1, 2)), ("(1)", 1), ("(1,)", (1,)), ("{'a': {'b': True}}", {"a": {"b": True}}),
        ("{}", {}), ("[\n 1, # one\n 2]", [1, 2]), (str(2**53 - 1), 2**53 - 1),
    ],
)  # fmt: skip
def test_a_default_that_is_a_literal(source: str, value: Any) -> None:
    assert parse_default(source) == value
    assert type(parse_default(source)) is type(value)


@pytest.mark.parametrize(
    "source",
    [
        None, "", str(2**53), "9" * 400, "[12345678901234567890]", "1e999", "-1e999", "{1: 2}",
        "{1, 2}", "b'a'", "1j", "[1 2]", "[1", "60 * 60", 'os.getenv("A")', "c(1, 2)", "TRUE",
        "[" * 2000, "-" * 50_000, f"'{'a' * 100_000}", "\0",
    ],
    ids=lambda source: repr(source)[:20],
)  # fmt: skip
def test_a_default_that_is_none(source: str | None) -> None:
    assert parse_default(source) is None
