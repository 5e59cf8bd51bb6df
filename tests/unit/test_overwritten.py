"""Carriage returns and backspaces: what is left is what JupyterLab leaves."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_runner.protocol.fold import NotebookFold, fold
from job_runner.protocol.overwritten import settle


def jupyterlab(pieces: list[str]) -> str:
    """JupyterLab's `processText` (outputarea 4.x), piece by piece, character by character."""
    text, at = "", 0
    for char in "".join(pieces):
        if char == "\b":
            if at > 0 and text[at - 1] != "\n":
                text = text[: at - 1] + text[at + 1 :]
                at -= 1
        elif char == "\r":
            at = text.rfind("\n", 0, at) + 1
        elif char == "\n":
            text += "\n"
            at = len(text)
        else:
            text = text[:at] + char + text[at + 1 :]
            at += 1
    return text


def output(text: str) -> dict[str, object]:
    return {"k": "output", "i": 0, "output": {"output_type": "stream", "name": "o", "text": text}}


def shown(run: NotebookFold) -> str:
    (cell,) = run.result()["cells"]
    return "".join(o["text"] for o in cell["outputs"])


texts = st.lists(st.text("ab\b\r\n", max_size=12), min_size=1, max_size=5)


@given(pieces=texts)
def test_text_is_settled_as_jupyterlab_does(pieces: list[str]) -> None:
    assert settle("".join(pieces))[0] == jupyterlab(pieces)


@given(pieces=texts)
def test_looking_in_between_changes_nothing(pieces: list[str]) -> None:
    run = NotebookFold({})
    for number, piece in enumerate(pieces, 1):
        run.feed(output(piece))
        assert shown(run) == jupyterlab(pieces[:number])


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
    assert settle(text)[0] == left


def test_20000_updates_are_one_line_and_quick() -> None:
    updates = [output(f"\r{n:6d}/20000 [{'#' * (n // 400):50}]") for n in range(20001)]
    began = time.process_time()
    (cell,) = fold({}, updates)["cells"]
    assert time.process_time() - began < 5
    assert cell["outputs"][0]["text"] == f" 20000/20000 [{'#' * 50}]"
