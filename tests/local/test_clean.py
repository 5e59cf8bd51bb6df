"""`clean`: old results go from the workspace after a question, and what was edited stays."""

from __future__ import annotations

from pathlib import Path

from .. import notebooks
from .cli import Cli

END_OF_FILE = b"\x04"
MAKES_FILES = "import os; os.makedirs('out', exist_ok=True); open('out/model.bin', 'w').write('x')"

MAKES_FOLDERS = """
import pathlib
for path in map(pathlib.Path, ('a/x', 'b/y')):
    path.parent.mkdir()
    path.write_text('x')
"""


def submit(cli: Cli, notebook: str, *options: str) -> tuple[str, Path]:
    job = cli.json("submit", notebook, "--wait", *options)
    return job["name"], cli.workspace / job["delivery"]["path"]


def test_old_results_are_removed_and_edited_ones_stay(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", MAKES_FILES)
    notebooks.write(cli.workspace / "b.ipynb", "1")
    first, oldest = submit(cli, "a.ipynb", "--isolated")
    made, added = cli.workspace / first / "out" / "model.bin", cli.workspace / first / "mine.txt"
    assert made.exists()
    added.write_text("a file of the user's own")
    _, edited = submit(cli, "a.ipynb")
    edited.write_text(edited.read_text() + "\n")
    _, newest = submit(cli, "a.ipynb")
    _, other = submit(cli, "b.ipynb")

    assert cli.json("clean", "--yes") == []  # all of them are of today
    assert cli.json("clean", "--older-than", "999999999d", "--keep", "0", "--yes") == []
    refused = cli.run("clean", "--older-than", "0")
    assert (refused.returncode, oldest.exists()) == (2, True)
    assert "--yes" in refused.stderr
    ran = cli.run("clean", "--older-than", "0", "--yes")
    assert ran.returncode == 0, ran.stderr
    assert "2 files removed" in ran.stdout
    assert f"{edited.name} was changed since, and stays." in ran.stderr
    assert [p.exists() for p in (oldest, made, edited, newest, other)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert added.exists() and not made.parent.exists()
    assert cli.json("show", first)["delivery"]["path"] == oldest.name, "the job stays"

    every = ("--older-than", "0", "--keep", "0", "--yes")
    removed = cli.json("clean", "a-*", *every)
    assert [(each["removed"], each["changed"]) for each in removed] == [
        ([newest.name], []), ([], [edited.name]),
    ]  # fmt: skip
    assert not newest.exists() and edited.exists() and other.exists()


def test_a_folder_that_is_a_link_by_now_stays(cli: Cli) -> None:
    """The user has moved it out of the workspace: what is elsewhere is removed all the same."""
    notebooks.write(cli.workspace / "n.ipynb", MAKES_FOLDERS)
    name, result = submit(cli, "n.ipynb", "--isolated")
    folder, elsewhere = cli.workspace / name, cli.workspace.parent / "elsewhere"
    (folder / "a").rename(elsewhere)
    (folder / "a").symlink_to(elsewhere)
    ran = cli.run("clean", "--older-than", "0", "--keep", "0", "--yes")
    assert ran.returncode == 0, ran.stderr
    assert f"{name}/a/x was changed since, and stays." in ran.stderr
    assert "2 files removed" in ran.stdout
    assert (elsewhere / "x").exists()
    assert not (folder / "b").exists() and not result.exists()


def test_a_job_that_is_not_there(cli: Cli) -> None:
    """Its name may be mistyped: nothing is removed."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    name, result = submit(cli, "a.ipynb")
    every = ("--older-than", "0", "--keep", "0", "--yes")
    ran = cli.run("clean", name, "nosuch-aaaaaaaa", *every)
    assert (ran.returncode, result.exists()) == (3, True)
    assert "There is no job 'nosuch-aaaaaaaa'." in ran.stderr
    assert (cli.run("clean", name, *every).returncode, result.exists()) == (0, False)


def test_an_empty_group_is_none(cli: Cli) -> None:
    """A variable that is not set does not mean the jobs without a group, or all of them."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    name, result = submit(cli, "a.ipynb")
    _, grouped = submit(cli, "a.ipynb", "--group", "night")
    every = ("--older-than", "0", "--keep", "0", "--yes")
    for command in (
        ("clean", *every), ("delete",), ("delete", name), ("list",), ("results",), ("rerun",),
    ):  # fmt: skip
        ran = cli.run(*command, "--group", "")
        assert (ran.returncode, ran.stdout) == (2, ""), command
        assert "'' cannot be the name of a group." in ran.stderr
    assert result.exists() and grouped.exists()
    assert len(cli.json("list")) == 2


def test_a_terminal_is_asked(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    _, result = submit(cli, "a.ipynb")
    arguments = ("clean", "--older-than", "0", "--keep", "0")
    terminal = cli.on_terminal(*arguments)
    shown = terminal.until_shown(r"Remove 1 result, [\d.]+ \w+\?")
    assert result.name in shown
    terminal.press(b"n\n")
    terminal.until_shown("Nothing was done")
    assert result.exists()
    terminal = cli.on_terminal(*arguments)
    terminal.until_shown(r"Remove 1 result")
    terminal.press(b"y\n")
    terminal.until_shown("1 file removed")
    assert not result.exists()


def test_a_question_can_be_left(cli: Cli) -> None:
    """Ctrl-D, and not Ctrl-C: Python may miss that between its prompt and its read."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    _, result = submit(cli, "a.ipynb")
    terminal = cli.on_terminal("clean", "--older-than", "0", "--keep", "0")
    terminal.until_shown(r"Remove 1 result")
    terminal.press(END_OF_FILE)
    terminal.until_ended()
    assert (terminal.process.returncode, result.exists()) == (130, True)
