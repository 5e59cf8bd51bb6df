"""Carriage returns and backspaces: what is left is what JupyterLab leaves."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_runner.protocol.result.carriage_return import StreamText, apply_overwrites

from .folds import fold, jupyterlab


def output(text: str) -> dict[str, object]:
    return {"k": "output", "i": 0, "output": {"output_type": "stream", "name": "o", "text": text}}


texts = st.lists(st.text("ab\b\r\n€\U0001f600", max_size=12), min_size=1, max_size=5)


@given(pieces=texts)
def test_text_is_settled_as_jupyterlab_does(pieces: list[str]) -> None:
    assert apply_overwrites("".join(pieces)) == jupyterlab("".join(pieces))


@given(pieces=texts)
def test_piece_by_piece_is_the_same(pieces: list[str]) -> None:
    stream, done = StreamText(), ""
    for number, piece in enumerate(pieces, 1):
        done += stream.feed(piece)
        assert done + stream.line == jupyterlab("".join(pieces[:number]))
        stream = StreamText([stream.line], stream.cursor)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("10%\r20%\r100%\n", "100%\n"),
        ("100%\r20%", "20%%"),
        ("a\r\nb\r\r\nc", "a\nb\nc"),
        ("abc\b\bd", "ad"),
        ("\b\ba", "a"),
        ("a\n\bb", "a\nb"),
        ("plain\n", "plain\n"),
    ],
)
def test_examples(text: str, left: str) -> None:
    assert apply_overwrites(text) == left


def test_20000_updates_are_one_line_and_quick() -> None:
    updates = [output(f"\r{n:6d}/20000 [{'#' * (n // 400):50}]") for n in range(20001)]
    began = time.process_time()
    (cell,) = fold({"nbformat": 4}, updates)["cells"]
    assert time.process_time() - began < 5
    assert cell["outputs"][0]["text"] == f" 20000/20000 [{'#' * 50}]"
