"""What people see on a terminal: bars, tables that fit, colours, Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from .. import notebooks
from ..processes import BOUND, until
from .cli import COMMAND, WAITING_CELL, Cli
from .terminal import INTERRUPT


def test_bars_tell_what_goes_on(cli: Cli) -> None:
    name = cli.submit_waiting()
    seen = cli.on_terminal("wait", name)
    seen.until_shown(rf"{name} +━+ +0/2 +\d:\d\d +cell 1 of 2")
    cli.release()
    text = seen.until_ended()
    assert seen.process.returncode == 0
    assert re.search(rf"{name} succeeded in [\d.]+ s", text)
    assert text.rstrip().endswith(f"{name}.ipynb")


def test_a_place_in_line_is_shown_and_the_bars_fit_the_terminal(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=2Gi"
    notebooks.write(cli.workspace / "waits.ipynb", WAITING_CELL, "print('end')")
    for number in range(9):
        notebooks.write(cli.workspace / "many" / f"n{number}.ipynb", "1")
    seen = cli.on_terminal("submit", "waits.ipynb", "many", "--wait", rows=8, columns=50)
    seen.until_shown(r"waits-\w{8} ━{8} 0/2 \d:\d\d cell 1")  # figures are not cut
    text = seen.until_shown(r"0 of 10 ended: \d queued")
    assert "queued, place 1 …" in text
    seen.press(INTERRUPT)
    text = seen.until_ended()
    assert seen.process.returncode == 130
    assert re.search(r"Return with: jupyter-to-job wait( (waits|n\d)-[a-z2-7]{8}){10}", text)
    assert 4 <= seen.most_lines_up() < 8
    long = [line for line in seen.lines if len(line) > 50]
    assert [line for line in long if "Return with" not in line] == []
    assert {job["state"] for job in cli.json("list")} == {"queued", "running"}


def test_the_table_fits_a_narrow_terminal(cli: Cli) -> None:
    notebooks.write(cli.workspace / "dir" / "with-a-long-name-indeed.ipynb", "1 / 0")
    name = cli.json("submit", "dir/with-a-long-name-indeed.ipynb", "--wait", code=1)["name"]
    wide = cli.on_terminal("list", columns=140).until_ended()
    assert wide.splitlines()[0].split() == [
        "JOB", "STATE", "CELLS", "SUBMITTED", "FLAVOR", "RESULT",
    ]  # fmt: skip
    assert f"dir/{name}.ipynb" in wide and "s ago" in wide
    for columns in (100, 60, 40, 20):
        lines = cli.on_terminal("list", columns=columns).until_ended().splitlines()
        assert len(lines) == 2, lines
        assert all(len(line) <= columns for line in lines), lines
        assert lines[0].startswith("JOB")
    assert name in cli.on_terminal("list", columns=60).until_ended()
    assert name in cli.run("list").stdout and "…" not in cli.run("list").stdout


def test_tracebacks_are_coloured_on_terminals_only(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print('text')", "1 / 0")
    name = cli.json("submit", "a.ipynb", "--wait", code=1)["name"]
    plain = cli.run("logs", name).stdout
    assert "ZeroDivisionError" in plain and "\x1b" not in plain
    seen = cli.on_terminal("logs", name)
    seen.until_ended()
    assert "\x1b[" in seen.raw
    assert seen.text.startswith("text\n")


@pytest.mark.parametrize("command", ["logs", "show", "doctor"])
def test_colours_heed_what_programs_agree_on(cli: Cli, command: str) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1 / 0")
    name = cli.json("submit", "a.ipynb", "--wait", code=1)["name"]
    arguments = [command] if command == "doctor" else [command, name]

    def piped(**variables: str) -> str:
        cli.variables = variables
        return cli.run(*arguments).stdout

    def on_terminal(**variables: str) -> str:
        cli.variables = variables
        seen = cli.on_terminal(*arguments)
        seen.until_ended()
        return seen.raw

    assert "\x1b[" in on_terminal() and "\x1b[" not in piped()
    assert "\x1b[" not in on_terminal(NO_COLOR="1")
    assert "\x1b[" in on_terminal(NO_COLOR="")
    assert "\x1b[" in piped(FORCE_COLOR="1")
    assert "\x1b[" not in piped(FORCE_COLOR="1", NO_COLOR="1")


def test_bars_without_colours(cli: Cli) -> None:
    cli.variables = {"NO_COLOR": "1"}
    name = cli.submit_waiting()
    seen = cli.on_terminal("wait", name)
    seen.until_shown("cell 1")
    cli.release()
    seen.until_ended()
    assert not re.search(r"\x1b\[[0-9;]*[34][0-9]", seen.raw)


def test_an_interrupted_follow_says_how_to_return(cli: Cli) -> None:
    name = cli.submit_waiting()
    seen = cli.on_terminal("logs", name, "--follow")
    seen.until_shown("before")
    seen.press(INTERRUPT)
    assert f"jupyter-to-job logs {name} --follow" in seen.until_ended()
    assert seen.process.returncode == 130


def test_elsewhere_a_change_of_state_is_a_line(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print(1)")
    ran = cli.run("submit", "a.ipynb", "--wait")
    name = Path(ran.stdout.strip()).stem
    lines = ran.stderr.splitlines()
    assert lines[0] == f"{name} submitted"
    assert re.fullmatch(rf"{name} succeeded in .* s", lines[-2])
    assert lines[-1].startswith(f"{name} used ")
    assert all(line.startswith(name) and "\x1b" not in line for line in lines)
    assert len(lines) == len(set(lines)) <= 6


def test_a_reader_that_leaves_is_no_error(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print('x' * 3_000_000)")
    name = cli.json("submit", "a.ipynb", "--wait")["name"]
    process = cli.start("logs", name)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.read(10) == "x" * 10
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("list >&-", 0, ""),
        ("submit a.ipynb --wait 2>&-", 0, ""),
        ("flavors > /dev/full", 5, "No space left on device"),
    ],
)
def test_a_stream_that_takes_nothing(cli: Cli, command: str, code: int, says: str) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = subprocess.run(
        ["/bin/sh", "-c", f'"$0" {command}', COMMAND],
        cwd=cli.workspace,
        env=cli.environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=2 * BOUND,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr and "Exception" not in ran.stderr


def test_what_is_said_after_a_log_is_on_a_line_of_its_own(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "print('open', end='')")
    name = cli.json("submit", "a.ipynb", "--wait")["name"]
    text = cli.on_terminal("logs", name, "--follow").until_ended()
    assert text == f"open\n{name} succeeded\n"
    assert cli.run("logs", name, "--follow").stdout == "open"


def test_any_text_in_any_locale(cli: Cli) -> None:
    source = "print('é → 漢 \\udc80 \\x00')"
    notebooks.write(cli.workspace / "é b.ipynb", source)
    cli.variables = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    job = cli.json("submit", "é b.ipynb", "--wait")
    assert job["notebook"] == "é b.ipynb"
    for command in ("logs", "show"):
        ran = cli.run(command, job["name"])
        assert ran.returncode == 0, ran.stderr
    assert "\\u6f22" in cli.run("logs", job["name"]).stdout
    assert cli.run("list").returncode == 0


def test_a_job_that_printed_nothing_yet(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=2Gi"
    cli.submit_waiting()
    notebooks.write(cli.workspace / "a.ipynb", "print('mine')")
    name = cli.submit("a.ipynb")
    ran = cli.run("logs", name)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "queued (place 1); it has printed nothing yet" in ran.stderr
    following = cli.start("logs", name, "--follow")
    cli.release()
    assert following.communicate(timeout=60)[0] == "mine\n"
    until(lambda: cli.results(name), "the result")
