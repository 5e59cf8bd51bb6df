"""Parameters keep their types all the way: from every way to give them to a cell that prints them.

A run that is asked for over REST has them as JSON; the other ways become that.
"""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from .. import notebooks
from .cli import Cli

LONG = "é\"'\\\n\t" * 17_000
TYPED = {
    "colon": (":", ":"),
    "url": ("u:https://x/{a}?b=%20", "u:https://x/{a}?b=%20"),
    "quotes": ("it's \"so\"", "it's \"so\""),
    "backslash": (r"C:\new\table", r"C:\new\table"),
    "text": ('"5"', "5"),
    "yes": ("true", True),
    "python_no": ("False", False),
    "nothing": ("null", None),
    "exponent": ("1e3", 1000.0),
    "whole": ("1000", 1000),
    "large": ("12345678901234567890123", 12345678901234567890123),
    "tiny": ("-2.5e-300", -2.5e-300),
    "nested": ('[1, [2.0, ["é", {"a": [null]}]], {}]', [1, [2.0, ["é", {"a": [None]}]], {}]),
    "unicode": ("你好 🚀 \u2028", "你好 🚀 \u2028"),
    "word": ("NaN", "NaN"),
    "empty": ("", ""),
    "number_like": ("007", "007"),
    "date": ("2026-11-21", "2026-11-21"),
}  # fmt: skip
RAW = {"raw_true": "true", "raw_number": "1e3", "raw_list": "[1]", "long": LONG}
FILE = {
    "f_list": [1, "1", 1.0, True, None],
    "f_text": "on: off",
    "f_long": LONG,
    "f_deep": {"a": {}},
    "f_tiny": 1e-05,
}


def test_all_types_arrive(cli: Cli) -> None:
    names = [*TYPED, *RAW, *FILE]
    declared = notebooks.parameters("".join(f"{name} = ...\n" for name in names))
    show = "print(repr({n: globals()[n] for n in " + repr(names) + "}))"
    notebooks.write(cli.workspace / "all.ipynb", declared, show)
    (cli.workspace / "p.json").write_text(json.dumps(FILE))
    given = [word for name, (text, _) in TYPED.items() for word in ("-p", name, text)]
    given += [word for name, text in RAW.items() for word in ("-r", name, text)]
    job = cli.json("submit", "all.ipynb", *given, "--params-file", "p.json", "--wait")
    assert job["state"] == "succeeded", job
    expected: dict[str, Any] = {name: value for name, (_, value) in TYPED.items()} | RAW | FILE
    seen = ast.literal_eval(notebooks.printed(cli.result(job)))
    assert seen == expected
    assert repr(seen) == repr({name: expected[name] for name in names})  # True is not 1
    recorded = notebooks.read(cli.result(job)).metadata.papermill.parameters
    assert json.loads(json.dumps(recorded)) == expected
    request = json.loads((cli.exchange / job["name"] / "request.json").read_text())
    assert request["parameters"] == expected


@pytest.mark.parametrize(
    ("text", "parameters"),
    [('{"lr": 0.3}', [{"lr": 0.3}]), ('[{"lr": 0.3}, {"lr": 1}]', [{"lr": 0.3}, {"lr": 1}])],
)
def test_a_pipe_is_a_file_of_parameters(
    cli: Cli, text: str, parameters: list[dict[str, Any]]
) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = cli.run("submit", "a.ipynb", "--params-file", "/dev/stdin", stdin_text=text)
    assert ran.returncode == 0, ran.stderr
    shown = [cli.json("show", name)["parameters"] for name in ran.stdout.split()]
    assert shown == parameters


@pytest.mark.parametrize("value", ["1e999", "-1e999", "[1, 2e400]"])
def test_what_is_no_number_is_refused(cli: Cli, value: str) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = cli.run("submit", "a.ipynb", "-p", "rate", value)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "too large" in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("text", "says"), [("rate: .inf\n", "inf"), ("rates: &all [*all]\n", "holds itself")]
)
def test_what_yaml_has_and_json_has_not(cli: Cli, text: str, says: str) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    (cli.workspace / "p.yaml").write_text(text)
    ran = cli.run("submit", "a.ipynb", "--params-file", "p.yaml")
    assert ran.returncode == 2 and says in ran.stderr and "Traceback" not in ran.stderr
