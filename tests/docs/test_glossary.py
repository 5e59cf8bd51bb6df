"""docs/glossary.md explains names that the code has, and every class name that is used twice."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from .pages import ROOT, page

PAGE = page("docs/glossary.md")
WORDS = PAGE.table("## Words of the code")
PRODUCT = ("jupyter_to_job", "job_runner")


@pytest.mark.parametrize(("word", "_", "path"), WORDS, ids=[row[0].strip("`") for row in WORDS])
def test_each_word_is_a_name_in_its_file(word: str, _: str, path: str) -> None:
    source = ROOT / path.strip("`")
    stem = word.strip("`").replace("_", "")
    names = {source.stem, source.parent.name, *_names(source)}
    assert any(stem in name.replace("_", "").lower() for name in names)


def test_each_file_of_the_front_end_is_there() -> None:
    files = [row[2].strip("`") for row in PAGE.table("## Words of the front end")]
    assert files
    assert [file for file in files if not (ROOT / "labextension/src" / file).is_file()] == []


def test_words_stand_in_order_and_once() -> None:
    words = [row[0].strip("`") for row in WORDS]
    assert words == sorted(set(words))


def test_classes_that_share_a_name_have_a_reason() -> None:
    classes = Counter(
        node.name
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    shared = {name for name, count in classes.items() if count > 1}
    assert set(PAGE.first_names("## Classes that share a name")) == shared


def test_each_meaning_is_a_sentence() -> None:
    meanings = [row[1] for row in PAGE.table("## The product's words") + WORDS]
    assert [text for text in meanings if not re.fullmatch(r"[A-Z`].*\.", text)] == []


def _names(path: Path) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}
