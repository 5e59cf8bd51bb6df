"""Several notebooks at once, and commands that take several jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .. import notebooks
from ..processes import BOUND, until
from .cli import POWERLESS, Cli


def test_a_batch_goes_on_without_its_bad_notebook(cli: Cli, tmp_path: Path) -> None:
    folder = cli.workspace / "folder"
    notebooks.write(folder / "one.ipynb", "print(1)")
    notebooks.write(folder / "two.ipynb", "1 / 0")
    notebooks.write(folder / ".hidden.ipynb", "1")
    notebooks.write(folder / "below" / "left-out.ipynb", "1")
    (folder / "broken.ipynb").write_text("{")
    notebooks.write(tmp_path / "elsewhere" / "three.ipynb", "print(3)")
    ran = cli.run("submit", "folder", str(tmp_path / "elsewhere" / "th*.ipynb"), "--wait")
    assert ran.returncode == 2
    results = [Path(line) for line in ran.stdout.splitlines()]
    assert [p.parent for p in results] == [folder, folder, tmp_path / "elsewhere"]
    assert "Error: folder/broken.ipynb" in ran.stderr and "3 of 4 submitted" in ran.stderr
    table = ran.stderr[ran.stderr.index("JOB ") :].splitlines()
    assert [line.split()[1:3] for line in table[1:]] == [
        ["succeeded", "1/1"],
        ["failed", "0/1"],
        ["succeeded", "1/1"],
        ["refused", "folder/broken.ipynb"],
    ]
    assert f"CellError: folder/{results[1].name}" in table[2]

    # The results lie beside their sources now, and are not submitted.
    (folder / "broken.ipynb").unlink()
    again = cli.run("submit", "folder", "--json")
    assert again.returncode == 0
    assert "2 that earlier jobs made" in again.stderr
    assert [job["notebook"] for job in json.loads(again.stdout)] == [
        "folder/one.ipynb",
        "folder/two.ipynb",
    ]


def test_names_come_one_a_line_and_keys_count_per_notebook(cli: Cli) -> None:
    for name in ("a", "b"):
        notebooks.write(cli.workspace / f"{name}.ipynb", "print(1)")
    arguments = ("submit", "a.ipynb", "b.ipynb", "--idempotency-key", "once")
    first, second = cli.run(*arguments), cli.run(*arguments)
    assert re.fullmatch(r"a-[a-z2-7]{8}\nb-[a-z2-7]{8}\n", first.stdout)
    assert first.stdout == second.stdout
    (one,) = cli.json("submit", "*.ipynb", "--idempotency-key", "other", "--name", "same")[:1]
    assert one["name"].startswith("same-")


def test_a_job_that_does_not_exist_does_not_end_the_waiting(cli: Cli) -> None:
    running, deleted = cli.submit_waiting(), "n-aaaaaaaa"
    waiting = cli.start("wait", running, deleted)
    assert waiting.stderr is not None
    assert deleted in waiting.stderr.readline()  # before it waits
    assert waiting.poll() is None
    cli.release()
    out, _ = waiting.communicate(timeout=BOUND)
    job = cli.json("show", running)
    assert (waiting.returncode, out.strip()) == (3, str(cli.result(job)))
    (waited,) = cli.json("wait", running, deleted, code=3)
    assert waited["name"] == running


def test_each_job_is_told_and_one_error_stops_no_other(cli: Cli) -> None:
    running = cli.submit_waiting()
    unknown = running[:-3]
    ran = cli.run("cancel", unknown, running, "zzz-abcd2345")
    assert ran.returncode == 3
    assert ran.stdout.startswith(f"{running} ")
    assert f"Did you mean {running}?" in ran.stderr and "zzz-abcd2345" in ran.stderr
    waited = cli.run("wait", running, unknown)
    (job,) = json.loads(cli.run("wait", running, running, "--json").stdout)
    assert (waited.returncode, waited.stdout.strip()) == (3, str(cli.result(job)))
    assert job["state"] == "cancelled"

    delivered = cli.run("deliver", running, unknown)
    assert delivered.returncode == 3
    assert delivered.stdout.strip() == str(cli.result(job))
    assert cli.json("deliver", running) == cli.json("cancel", running) == job

    (gone,) = json.loads(cli.run("delete", running, "--json", unknown).stdout)
    assert gone == job
    assert cli.run("list").stdout == ""
    assert cli.result(job).exists()


def test_a_job_in_full(cli: Cli) -> None:
    name = cli.submit_waiting()
    running = cli.run("deliver", name)
    assert running.returncode == 1 and "it is running" in running.stderr
    shown = cli.run("show", name).stdout
    assert "running cell  1 of 2\n" in shown and "runs for" in shown
    cli.release()
    assert cli.run("wait", name).returncode == 0
    shown = cli.run("show", name).stdout
    assert f"{name}  succeeded" in shown
    assert re.search(
        r"memory +[\d.<]+ of [\d.]+ GiB at most, [\d.<]+ of [\d.]+ GiB on average\n", shown
    )
    assert re.search(rf"notebook +{name}\.ipynb", shown)


def test_rerun(cli: Cli) -> None:
    defaults = notebooks.parameters("epochs, rate = 1, 0.5")
    source = notebooks.write(cli.workspace / "a.ipynb", defaults, "print(epochs, rate)")
    first = cli.json("submit", "a.ipynb", "-p", "epochs", "2", "-p", "rate", "2", "--wait")
    source.unlink()
    ran = cli.run("rerun", first["name"], "-p", "epochs", "3", "--wait")
    assert ran.returncode == 0, ran.stderr
    assert notebooks.printed(Path(ran.stdout.strip())) == "3 2\n"
    assert Path(ran.stdout.strip()).stem != first["name"]
    second = cli.json("rerun", first["name"], "-f", "medium")
    assert (second["flavor"], second["parameters"]) == ("medium", first["parameters"])
    third = cli.json("rerun", first["name"], "--unset", "epochs", "-p", "rate", "4")
    assert third["parameters"] == {"rate": 4}
    refused = cli.run("rerun", first["name"], "--unset", "epoch")
    assert refused.returncode == 2
    assert "The job has no parameter 'epoch'." in refused.stderr
    assert "Did you mean 'epochs'?" in refused.stderr


def test_rerun_of_the_notebook_as_it_is_now(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", notebooks.parameters("rate = 1"), "1 / 0")
    failed = cli.json("submit", "a.ipynb", "-p", "rate", "2", "--name", "mine", "--wait", code=1)
    assert failed["state"] == "failed"
    assert failed["message"].startswith("Cell 2 (In [3]) raised ZeroDivisionError")
    notebooks.write(cli.workspace / "a.ipynb", notebooks.parameters("rate = 1"), "print(rate)")
    mended = cli.json("rerun", failed["name"], "--current", "--priority", "3", "--wait")
    assert (mended["state"], mended["parameters"]) == ("succeeded", {"rate": 2})
    assert mended["name"].startswith("mine-") and mended["priority"] == 3
    assert notebooks.printed(cli.workspace / mended["delivery"]["path"]) == "2\n"
    plain = cli.json("rerun", failed["name"], "--current", "--unset", "rate")
    assert plain["parameters"] == {} and plain["group"] is None


def test_what_failed_of_a_group_runs_again_as_it_is_now(cli: Cli) -> None:
    for name in ("a", "b"):
        notebooks.write(cli.workspace / f"{name}.ipynb", "1 / 0")
    failed = cli.run("submit", "a.ipynb", "b.ipynb", "--group", "night").stdout.split()
    assert cli.run("wait", "--group", "night").returncode == 1
    for name in ("a", "b"):
        notebooks.write(cli.workspace / f"{name}.ipynb", "print(1)")
    mended = cli.run("rerun", "--group", "night", "--failed", "--current", "--wait", "--json")
    assert mended.returncode == 0, mended.stderr
    assert [(job["group"], job["rerun_of"]) for job in json.loads(mended.stdout)] == [
        ("night", name) for name in failed
    ]
    assert cli.run("wait", "--group", "night").returncode == 0
    assert cli.run("rerun", "--group", "night", "--failed").stdout == ""
    matched = cli.run("rerun", "--group", "night", f"{failed[1][:-1]}?")
    assert (matched.returncode, matched.stdout) == (0, "")
    assert "All of them were run again already." in matched.stderr
    named = cli.json("rerun", "--group", "night", failed[0])
    assert [job["rerun_of"] for job in named] == failed[:1]


def test_unknown_parameters_and_inputs_are_told(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=2Gi"
    notebooks.write(cli.workspace / "a.ipynb", notebooks.parameters("epochs = 1"), "1")
    notebooks.write(cli.workspace / "b.ipynb", "1")
    (cli.workspace / "data").mkdir()
    for name in ("x", "y"):
        (cli.workspace / "data" / name).write_text("12345")
    ran = cli.run("submit", "a.ipynb", "b.ipynb", "-p", "epocs", "1", "-i", "data")
    assert ran.returncode == 0
    assert len(ran.stdout.split()) == 2
    told = ran.stderr.splitlines()
    assert [line for line in told if "2 files" in line] == ["Sends 2 files, 10 bytes."]
    unknown = "epocs is no parameter of this notebook."
    assert f"Warning: a.ipynb: {unknown} Did you mean 'epochs'?" in told
    hint = "It is set all the same. Tag the cell with the defaults `parameters`."
    assert f"Warning: b.ipynb: {unknown} {hint}" in told
    assert cli.run("submit", "a.ipynb", "-p", "epochs", "2").stderr == ""


def test_the_newest_fifty_and_a_hint(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=2Gi"
    notebooks.write(cli.workspace / "a.ipynb", "1")
    blocker = cli.submit_waiting()
    for number in range(51):
        notebooks.write(cli.workspace / "many" / f"n{number:02}.ipynb", "1")
    assert len(cli.run("submit", "many").stdout.split()) == 51
    shown = cli.run("list")
    assert len(shown.stdout.splitlines()) == 51
    assert shown.stderr == "These are the newest 50; --all lists all.\n"
    assert len(cli.json("list")) == 50
    assert len(cli.json("list", "--all")) == 52
    assert [job["name"] for job in cli.json("list", "--state", "running")] == [blocker]
    assert cli.json("list", "--state", "failed") == []
    assert cli.run("list", "--state", "failed").stderr == "No job has the state failed.\n"
    told = cli.run("list", blocker, "--state", "failed").stderr
    assert told == "None of these jobs has the state failed.\n"
    names = [job["name"] for job in cli.json("list", "--all")]
    assert cli.run("delete", *names).returncode == 0
    until(lambda: cli.json("list") == [], "all are gone")


def test_arguments_that_mean_nothing(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    (cli.workspace / "private.txt").write_text("not to be sent")
    for arguments, says in [(("-i", ""), "is no file"), (("--output", "x/" * 3000), "too long")]:
        ran = cli.run("submit", "a.ipynb", *arguments)
        assert (ran.returncode, ran.stdout) == (2, "") and says in ran.stderr, ran.stderr
        assert len(ran.stderr) < 1000
    assert cli.json("list") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("locked/a.ipynb",), "Cannot read locked/a.ipynb: Permission denied."),
        (("locked",), "'locked' is not readable."),
        (("a.ipynb", "b.ipynb", "--output", "locked/x"), "Cannot write locked/x: Permission"),
    ],
)
def test_a_path_that_is_closed_to_the_user(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    """It is not the backend that cannot be reached."""
    for name in ("a.ipynb", "b.ipynb", "locked/a.ipynb"):
        notebooks.write(cli.workspace / name, "1")
    (cli.workspace / "locked").chmod(0)
    cli.command = (*POWERLESS, *cli.command)
    ran = cli.run("submit", *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert says in ran.stderr
    assert cli.json("list") == []
    too_long = cli.run("submit", "x" * 5000)
    assert too_long.returncode == 2 and len(too_long.stderr) < 1000


@pytest.mark.parametrize(
    "command",
    [
        ("submit", ""),
        ("submit", "a.ipynb", ""),
        ("submit", "a.ipynb", "--output", ""),
        ("submit", "a.ipynb", "--params-file", ""),
        ("export", "a-aaaaaaaa", "--output", ""),
        ("results", "a-aaaaaaaa", "--parquet", ""),
        ("flavors", "check", ""),
    ],
    ids=" ".join,
)
def test_an_empty_path_is_none(cli: Cli, command: tuple[str, ...]) -> None:
    """A variable that is not set does not mean the current folder."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    ran = cli.run(*command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "An empty text is no path." in ran.stderr
    assert cli.json("list") == []
