"""docs/notifications.md documents every key of a hook and no other, and its examples load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_to_job.notifications.hooks import Hook, load_hooks
from jupyter_to_job.notifications.message import sample_message

from .pages import Block, page

PAGE = page("docs/notifications.md")
EXAMPLES = [b for b in PAGE.blocks if b.language == "yaml" and b.text.startswith("hooks:")]
FIELDS = Hook.model_fields


def load(tmp_path: Path, text: str) -> Hook:
    file = tmp_path / "hooks.yaml"
    file.write_text(text)
    return load_hooks([file])[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: str(block.line))
def test_each_example_loads(example: Block, tmp_path: Path) -> None:
    assert load(tmp_path, example.text).target


def test_there_is_an_example_of_each_kind_that_needs_one(tmp_path: Path) -> None:
    targets = {load(tmp_path, example.text).target for example in EXAMPLES}
    assert targets == {"slack", "teams", "mail"}


def test_every_key_and_no_other() -> None:
    assert PAGE.first_names("## What a hook may have") == [
        *("name", "when", "webhook", "secret_file", "ca_file", "slack", "teams", "mail", "command"),
        *("link", "root", "groups", "message", "timeout", "tries", "retry_after"),
    ]
    assert set(PAGE.first_names("## What a hook may have")) == set(FIELDS)


def test_defaults() -> None:
    shown = {row[0].strip("`"): row[1].strip("`") for row in PAGE.table("## What a hook may have")}
    for name in ("timeout", "retry_after"):
        assert shown[name] == f"{FIELDS[name].default}s"
    assert shown["tries"] == str(FIELDS["tries"].default)
    assert shown["when"] == f"[{', '.join(FIELDS['when'].default)}]"
    assert shown["message"] == str(FIELDS["message"].default).lower()


def test_the_document_has_the_fields_that_are_sent(tmp_path: Path) -> None:
    (block,) = (b for b in PAGE.blocks if b.language == "json")
    sent = json.loads(sample_message(load(tmp_path, EXAMPLES[0].text)).as_json())
    shown = json.loads(block.text)
    assert set(shown) == set(sent)
    assert list(shown["data"]) == list(sent["data"])
