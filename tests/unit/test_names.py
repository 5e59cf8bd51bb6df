"""Job names: whatever the notebook is called, a DNS label that fits a pod's."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jupyter_to_job.domain.names import MAX_LENGTH, is_job_name, job_name, slug

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@given(path=st.text(min_size=1), owner=st.text(), key=st.none() | st.text())
@example(path="-.ipynb", owner="", key=None)
@example(path="a" * 42 + "-b.ipynb", owner="", key=None)
def test_every_name_is_a_label(path: str, owner: str, key: str | None) -> None:
    name = job_name(path, owner=owner, key=key)
    assert DNS_LABEL.fullmatch(name)
    assert len(name) <= MAX_LENGTH == 52
    assert is_job_name(name)


@given(path=st.text(min_size=1), owner=st.text(), key=st.text())
def test_a_key_names_one_job_of_one_owner_and_notebook(path: str, owner: str, key: str) -> None:
    name = job_name(path, owner=owner, key=key)
    assert name == job_name(path, owner=owner, key=key)
    assert name[-8:] != job_name(path, owner=owner + "x", key=key)[-8:]
    assert name[-8:] != job_name(path, owner=owner, key=key + "x")[-8:]
    assert name[-8:] != job_name("x" + path, owner=owner, key=key)[-8:]


def test_fields_do_not_run_into_each_other() -> None:
    assert job_name("n", owner="ab", key="c")[-8:] != job_name("n", owner="a", key="bc")[-8:]


def test_without_a_key_names_differ() -> None:
    assert len({job_name("a.ipynb", owner="me") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train", "train"),
        ("My  Training_run (v2)", "my-training-run-v2"),
        ("Übung für Zoë", "ubung-fur-zoe"),
        ("ﬁnal №2", "final-no2"),
        ("数据分析", "shujufenxi"),
        ("日本語", "ribenyu"),
        ("データ分析", "detafenxi"),
        ("Анализ данных", "analiz-dannykh"),
        ("Größe", "grosse"),
        ("naïve cafe\u0301", "naive-cafe"),
        ("한국어", "hangugeo"),
        ("📈 plot, v2", "plot-v2"),
        ("📈", "notebook"),
        ("--", "notebook"),
        ("x" * 100, "x" * 43),
    ],
)
def test_slug(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_a_label_replaces_the_stem() -> None:
    assert job_name("dir/train.ipynb", owner="me", key="k").startswith("train-")
    assert job_name("dir/train.ipynb", owner="me", key="k", label="Night run")[:-9] == "night-run"


@pytest.mark.parametrize(
    "text",
    ["", "train", "../train-abcd2345", "train-abcd2345/x", "Train-abcd2345", "train-abcd2341",
     ".new-abcd2345", "train-abcd2345\n", "x" * 50 + "-abcd2345"],
)  # fmt: skip
def test_what_is_no_name(text: str) -> None:
    assert not is_job_name(text)
