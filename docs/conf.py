"""Sphinx's configuration. `make docs` builds the site; `tests/docs/test_site.py` checks it.

The source folder is the repository's root and not `docs/`: pages link to files outside of `docs/`,
and a link has to work in a checkout, on a code host and on the site.
"""

from __future__ import annotations

from importlib.metadata import version as version_of
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "Jupyter to Job"
author = "The Jupyter to Job developers"
project_copyright = author
release = version = version_of("jupyter-to-job")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = [
    "*.md",
    "docs/**.md",
    "examples/README.md",
    "k8s/README.md",
    "tests/cluster/README.md",
]
# Only saves time: Sphinx walks through every folder that is not excluded.
exclude_patterns = [
    ".*",
    "demo",
    "dist",
    "docs/_build",
    "job_runner",
    "jupyter_to_job",
    "node_modules",
]

# Headings get the anchors that code hosts give them, so that a link to one works in both places.
myst_heading_anchors = 4
highlight_language = "text"

# In docstrings, backticks mean code.
default_role = "code"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = project
html_css_files = ["site.css"]
html_extra_path = ["site"]
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
templates_path = ["_templates"]
html_sidebars = {"**": ["all-pages.html"]}
html_theme_options = {
    "footer_end": [],
    "footer_start": ["copyright"],
    "navbar_center": [],
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "show_toc_level": 2,
}


def hide_protocol_signature(
    _app: Sphinx, _kind: str, _name: str, documented: Any, _options: Any, *signature: str | None
) -> tuple[str | None, ...]:
    """Leave out `(*args, **kwargs)`, which Python gives to protocols: nobody calls them."""
    return (None, None) if getattr(documented, "_is_protocol", False) else signature


def setup(app: Sphinx) -> None:
    """Name a language of code blocks that Pygments does not know, and tidy signatures."""
    app.add_lexer("gitignore", TextLexer)
    app.connect("autodoc-process-signature", hide_protocol_signature)
