"""Writes the parts of pages that the code knows best; `scripts/docs` calls it, a test holds it.

A generated part stands between `<!-- scripts/docs: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from jupyter_to_job.cli.main import main as command_line
from jupyter_to_job.domain.errors import BadCatalog
from jupyter_to_job.flavors import parse_catalog

from . import man_page
from .commands import PROGRAM, walk
from .pages import PAGES, Page
from .rest_reference import reference

_PART = re.compile(r"(<!-- scripts/docs: ([\w-]+) -->\n).*?(^<!-- end -->)", re.DOTALL | re.M)


def commands(_page: Page) -> str:
    """Return the reference of all commands: what `--help` of each prints."""
    sections = []
    for path, command, context in walk(command_line, PROGRAM):
        title = path if path == PROGRAM else path.removeprefix(f"{PROGRAM} ")
        text = command.get_help(context)
        sections.append(f"### {title}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n" + "\n".join(sections) + "\n"


def faults(page: Page) -> str:
    """Return what is said of the page's broken catalog."""
    (broken,) = (block for block in page.blocks if block.language == "yaml broken")
    try:
        parse_catalog(broken.text.encode(), "flavors.yaml")
    except BadCatalog as error:
        lines = (
            f"flavors.yaml:{f.line}:{f.column}: {f.message} {f.hint}".rstrip() for f in error.faults
        )
        return "\n```text\n" + "\n".join(lines) + "\n```\n\n"
    raise ValueError(f"{page}: the broken example is none")


PARTS: dict[str, Callable[[Page], str]] = {
    "commands": commands,
    "faults": faults,
    "rest": lambda _page: reference(),
}


def regenerate(page: Page) -> str:
    """Return a page's text with its generated parts made anew."""
    return _PART.sub(lambda part: part[1] + PARTS[part[2]](page) + part[3], page.text)


def main() -> int:
    """Write all pages; say which changed."""
    for page in PAGES:
        text = regenerate(page)
        if text != page.text:
            page.path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{page}\n")
    man_page.PATH.write_text(man_page.man_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
