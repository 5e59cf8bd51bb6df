"""Results as documents: HTML with and without code, other formats, and what is refused."""

from __future__ import annotations

import html
import re
from pathlib import Path

from .. import notebooks
from .cli import POWERLESS, Cli

CODE = "print('6 times 7 is', 6 * 7)"
PRINTED = "6 times 7 is 42"


def text_of(page: Path) -> str:
    """Return what a page says, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text()))


def test_html_with_and_without_code(cli: Cli) -> None:
    notebooks.write(cli.workspace / "deep" / "sums.ipynb", CODE)
    job = cli.json("submit", "deep/sums.ipynb", "--wait")
    ended = cli.run("export", job["name"])
    assert ended.returncode == 0, ended.stderr
    page = cli.result(job).with_suffix(".html")
    assert ended.stdout == f"{page}\n", "it stands beside the result"
    assert f"<title>{job['name']}</title>" in page.read_text()
    assert CODE in text_of(page)
    assert PRINTED in text_of(page)

    refused = cli.run("export", job["name"], "--no-code")
    assert refused.returncode != 0
    assert "--force" in refused.stderr
    assert CODE in text_of(page), "nothing is replaced unasked"
    assert cli.run("export", job["name"], "--no-code", "--force").returncode == 0
    assert CODE not in text_of(page)
    assert PRINTED in text_of(page)


def test_several_jobs_and_formats(cli: Cli) -> None:
    notebooks.write(cli.workspace / "sums.ipynb", CODE)
    names = [cli.json("submit", "sums.ipynb", "--wait")["name"] for _ in range(2)]
    (cli.workspace / "shared").mkdir()
    ended = cli.run("export", "sums-*", "--to", "markdown", "--output", "shared")
    assert ended.returncode == 0, ended.stderr
    pages = sorted((cli.workspace / "shared").iterdir())
    assert [page.name for page in pages] == sorted(f"{name}.md" for name in names)
    assert all(PRINTED in page.read_text() for page in pages)
    one_file = cli.run("export", "sums-*", "--output", "both.html")
    assert one_file.returncode == 2
    assert "both.html is not a folder" in one_file.stderr
    named = cli.run("export", names[0], "--output", "report.html")
    assert named.stdout == "report.html\n", named.stderr
    assert PRINTED in text_of(cli.workspace / "report.html")


def test_a_script_has_the_extension_of_its_language(cli: Cli) -> None:
    notebooks.write(cli.workspace / "sums.ipynb", CODE)
    name = cli.json("submit", "sums.ipynb", "--wait")["name"]
    mine = cli.workspace / "train.py"
    mine.write_text("# mine")
    refused = cli.run("export", name, "--to", "script", "--output", "train")
    assert refused.returncode != 0
    assert "train.py exists" in refused.stderr
    assert mine.read_text() == "# mine"
    forced = cli.run("export", name, "--to", "script", "--output", "train.py", "--force")
    assert forced.stdout == "train.py\n", forced.stderr
    assert CODE in mine.read_text()
    slides = cli.run("export", name, "--to", "slides", "--output", "talk.slides.html")
    assert slides.stdout == "talk.slides.html\n", slides.stderr
    assert (cli.workspace / "talk.slides.html").exists()


def test_what_exists_of_a_running_job(cli: Cli) -> None:
    name = cli.submit_waiting()
    ended = cli.run("export", name)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{name}.html\n"
    assert "before" in text_of(cli.workspace / f"{name}.html")
    cli.release()


def test_a_place_that_cannot_be_written(cli: Cli) -> None:
    """It is what the user has named, and each job is tried."""
    notebooks.write(cli.workspace / "sums.ipynb", CODE)
    names = [cli.json("submit", "sums.ipynb", "--wait")["name"] for _ in range(2)]
    ended = cli.run("export", *names, "--output", "/proc/")
    assert (ended.returncode, ended.stdout) == (2, "")
    for name in names:
        assert f"Cannot write /proc/{name}.html: " in ended.stderr
    (cli.workspace / "locked").mkdir(mode=0)
    cli.command = (*POWERLESS, *cli.command)
    for asked, path in ((names, "locked/deep"), (names[:1], "locked/page.html")):
        ended = cli.run("export", *asked, "--output", path)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"Cannot write {path}: Permission denied." in ended.stderr


def test_refusals_say_what_to_do(cli: Cli) -> None:
    notebooks.write(cli.workspace / "sums.ipynb", CODE)
    name = cli.json("submit", "sums.ipynb", "--wait")["name"]
    unknown = cli.run("export", name, "--to", "papyrus")
    assert unknown.returncode == 2
    assert "There is no format 'papyrus'" in unknown.stderr
    assert "markdown" in unknown.stderr
    nowhere = cli.run("export", name, "--output", "no/such/report.html")
    assert nowhere.returncode == 2
    assert "There is no folder no/such" in nowhere.stderr
    cli.variables["PATH"] = str(cli.workspace)  # neither XeLaTeX nor Pandoc
    pdf = cli.run("export", name, "--to", "pdf")
    assert pdf.returncode != 0
    assert "HTML needs no other programs" in pdf.stderr, "neither is Playwright's Chromium there"
    assert cli.run("export", "sums-aaaaaaaa").returncode == 3
