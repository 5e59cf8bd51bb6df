"""Which runs a sweep makes of its axes, and how a repeated one finds the jobs that it has made."""

from __future__ import annotations

import pytest

from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.domain.names import is_job_name
from jupyter_to_job.domain.submission_rules import check_group
from jupyter_to_job.domain.sweep import (
    MAX_RUNS,
    Axis,
    Run,
    combine,
    group_name,
    submissions_of,
    zip_together,
)

LR = Axis("lr", [Run({"lr": 0.1}), Run({"lr": 0.01})])
SEED = Axis("seed", [Run({"seed": 1}), Run({"seed": 2})])
FLAVOR = Axis("flavor", [Run(flavor="small")])


def test_every_combination_the_last_axis_first() -> None:
    runs = combine([LR, SEED, FLAVOR])
    assert [(r.parameters["lr"], r.parameters["seed"]) for r in runs] == [
        (0.1, 1), (0.1, 2), (0.01, 1), (0.01, 2),
    ]  # fmt: skip
    assert {run.flavor for run in runs} == {"small"}
    assert combine([]) == zip_together([]) == [Run()]


def test_values_side_by_side() -> None:
    runs = zip_together([LR, SEED, FLAVOR])
    assert runs == [
        Run({"lr": 0.1, "seed": 1}, "small"),
        Run({"lr": 0.01, "seed": 2}, "small"),
    ]
    with pytest.raises(BadInput, match="lr has 2, seed has 3"):
        zip_together([LR, Axis("seed", [Run()] * 3)])


def test_too_many() -> None:
    with pytest.raises(BadInput, match=str(MAX_RUNS)):
        combine([Axis("a", [Run()] * 1000), Axis("b", [Run()] * 1000)])
    with pytest.raises(BadInput, match=str(MAX_RUNS)):
        zip_together([Axis("a", [Run()] * (MAX_RUNS + 1))])


def test_what_a_run_sets_wins() -> None:
    common = Submission("a.ipynb", flavor="large", parameters={"lr": 1, "epochs": 5})
    (first, second) = submissions_of(common, [Run({"lr": 2}), Run(flavor="small", device="t4")])
    assert first.parameters == {"lr": 2, "epochs": 5} and first.flavor == "large"
    assert second.parameters == common.parameters
    assert (second.flavor, second.device) == ("small", "t4")
    with pytest.raises(BadInput, match="cannot be the name of a parameter"):
        submissions_of(common, [Run({"a b": 1})])


def test_a_key_follows_the_run_and_not_its_place() -> None:
    def keys(key: str | None, *runs: Run) -> list[str | None]:
        common = Submission("a.ipynb", idempotency_key=key)
        return [made.idempotency_key for made in submissions_of(common, runs)]

    one, two = Run({"lr": 1}), Run({"lr": 2})
    first = keys("k", one, two)
    assert keys("k", two, one, Run({"lr": 3}))[:2] == first[::-1]
    assert len({*first, *keys("other", one, two), *keys("k", one, one)}) == 5
    assert keys("k", one, one)[0] == first[0]
    assert keys(None, one, two) == [None, None]


def test_names_of_groups() -> None:
    name = group_name("dir/Größe 2.ipynb", "key")
    assert name == group_name("dir/Größe 2.ipynb", "key") != group_name("dir/Größe 2.ipynb")
    labelled = [group_name(f"{folder}/a.ipynb", "key", "exp") for folder in ("x", "y", "x")]
    assert labelled[0] == labelled[2] != labelled[1]
    assert name.startswith("grosse-2-sweep-") and is_job_name(name)
    check_group(name, 3)
    for wrong in ("", "a b", "a/b", "-a", "a*", "x" * 64, "a\n"):
        with pytest.raises(BadInput):
            check_group(wrong, None)
    for group, limit in ((None, 1), ("a", 0)):
        with pytest.raises(BadInput, match="limit"):
            check_group(group, limit)
