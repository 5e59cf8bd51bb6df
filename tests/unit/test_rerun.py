"""What a rerun asks for: what was asked then, with the changes over it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_to_job.domain.errors import BadInput, Damaged
from jupyter_to_job.domain.job import Changes, Submission
from jupyter_to_job.exchange import FileExchange, InputFile
from jupyter_to_job.exchange.request import Environment
from jupyter_to_job.service.submitting.rerun import original_caller, resubmission, stored_snapshot
from jupyter_to_job.service.submitting.submission import Caller

from . import exchanges

REQUEST = exchanges.request(
    "label-abcd2345", flavor_spec={"max_runtime": 7200}, max_runtime=7200, priority=3,
    parameters={"a": 1, "b": 2}, env={"A": "1"}, output="results", isolated=True, kernel="ir",
    inputs=(InputFile("data.csv", "0" * 64, 4),),
)  # fmt: skip
SUBMISSION = Submission(
    "train.ipynb", flavor="small", device="cpu", parameters={"a": 1, "b": 2}, env={"A": "1"},
    inputs=("data.csv",), isolated=True, output="results", name="label", priority=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        (Changes(), {}),
        (Changes(parameters={"b": None, "c": []}), {"parameters": {"a": 1, "b": None, "c": []}}),
        (Changes(env={"A": "2"}), {"env": {"A": "2"}}),
        (Changes(priority=0, output="x", name="n"), {"priority": 0, "output": "x", "name": "n"}),
        (Changes(max_runtime=60), {"max_runtime": 60}),
        (Changes(flavor="small"), {}),
        (Changes(flavor="big"), {"flavor": "big", "device": None}),
        (Changes(unset=("parameters.a", "output")), {"parameters": {"b": 2}, "output": None}),
        (Changes(unset=("env.A", "max_runtime")), {"env": {}}),
        (Changes(parameters={"a": 3}, unset=("parameters.a",)), {"parameters": {"a": 3, "b": 2}}),
        (Changes(device="t4"), {"device": "t4"}),
        (Changes(idempotency_key="k"), {"idempotency_key": "k"}),
    ],
)
def test_the_changes_are_laid_over(changes: Changes, asked: dict[str, object]) -> None:
    assert resubmission(REQUEST, changes) == replace(SUBMISSION, rerun_of=REQUEST.name, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("flavor", [None, "big"])
def test_only_a_limit_of_the_user_stays(flavor: str | None) -> None:
    """Also one above the flavor's, which that flavor cut. An older request has no word on it."""
    asked = replace(REQUEST, max_runtime_asked=9000)
    assert resubmission(asked, Changes(flavor=flavor)).max_runtime == 9000
    assert resubmission(asked, Changes(flavor=flavor, unset=("max_runtime",))).max_runtime is None
    older = replace(REQUEST, max_runtime=600)
    assert resubmission(older, Changes(flavor=flavor)).max_runtime == 600
    assert resubmission(REQUEST, Changes(flavor=flavor)).max_runtime is None


def test_names_and_patterns_stay_as_they_were_given() -> None:
    asked = replace(REQUEST, name_asked="Mine", inputs_asked=("data/*.csv",))
    again = resubmission(asked, Changes())
    assert (again.name, again.inputs) == ("Mine", ("data/*.csv",))
    for request in (asked, REQUEST):
        assert resubmission(request, Changes(unset=("name",))).name is None
    unnamed = replace(REQUEST, name="train-abcd2345", notebook="dir/Train.ipynb")
    assert resubmission(unnamed, Changes()).name is None


@pytest.mark.parametrize(
    ("unset", "message"),
    [("parameters.aa", "no parameter 'aa'"), ("env.B", "no variable 'B'")],
)
def test_what_the_job_does_not_have_cannot_be_unset(unset: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        resubmission(REQUEST, Changes(unset=(unset,)))


def test_the_environment_of_then_if_it_is_there(tmp_path: Path) -> None:
    """And its kernel: the recorded specification, or for an older request whatever runs there."""
    python = tmp_path / "python"
    python.touch()
    now = Caller(
        "me",
        "/elsewhere",
        environment=Environment("/usr/bin/python3", "here", {}),
        resolve_kernel=lambda name: {"argv": [name]},
    )
    then = Environment(str(python), "here", {"PATH": "/then"})
    again = original_caller(replace(REQUEST, environment=then), now)
    assert (again.workspace, again.environment, again.kernel_spec("ir")) == ("/w", then, None)
    same = original_caller(replace(REQUEST, environment=then), replace(now, environment=then))
    assert same.kernel_spec("ir") == {"argv": ["ir"]}
    recorded = replace(REQUEST, environment=then, kernel_spec={"argv": ["recorded"]})
    for caller in (now, replace(now, environment=then)):
        assert original_caller(recorded, caller).kernel_spec("ir") == {"argv": ["recorded"]}
    for other in (replace(then, host="elsewhere"), replace(then, interpreter="/gone")):
        instead = original_caller(replace(recorded, environment=other), now)
        assert instead.environment == now.environment
        assert instead.kernel_spec("ir") == {"argv": ["ir"]}


def test_a_snapshot_that_is_not_what_was_submitted(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path / "exchange")
    exchanges.add(exchange, "label-abcd2345")
    with pytest.raises(Damaged):
        stored_snapshot(exchange, exchange.request("label-abcd2345"))
