"""The documentation site builds without a warning, and every link on it leads somewhere.

Only links inside of the site are followed: the tests need no internet.
"""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .pages import DOCS, ROOT


class _HtmlPage(HTMLParser):
    """The links of an HTML page, and what links to it may name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return the links of a site that lead to no file or to no anchor, each after its page."""
    paths = (p for p in site.rglob("*.html") if "_static" not in p.parts)  # there: templates
    pages = {p: _HtmlPage(p.read_text(encoding="utf-8")) for p in paths}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else None
            lost_anchor = parts.fragment and anchors is not None and parts.fragment not in anchors
            if not target.exists() or lost_anchor:
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built with warnings as errors."""
    target = tmp_path_factory.mktemp("site")
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", str(DOCS)]
    build = subprocess.run(
        [sys.executable, *command, "-d", str(target / "doctrees"), str(ROOT), str(target / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    return target / "html"


def test_every_link_leads_somewhere(site: Path) -> None:
    assert broken_links(site) == []


def test_the_interfaces_are_shown(site: Path) -> None:
    anchors = _HtmlPage((site / "docs/python-api.html").read_text(encoding="utf-8")).anchors
    assert {
        "jupyter_to_job.backends.port.Backend.admit",
        "jupyter_to_job.exchange.port.Exchange.append",
        "jupyter_to_job.domain.errors.NeverFits",
    } <= anchors
    assert "ISubmitDialog" in (site / "docs/extension-api.html").read_text(encoding="utf-8")


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="b.html">1</a><a href="#y">2</a><a href="#x">3</a>'
        '<a href="https://example.org/">4</a>',
        encoding="utf-8",
    )
    assert broken_links(tmp_path) == ["a.html: b.html", "a.html: #y"]
