"""The documentation site, built by `make site`: Sphinx reads the pages where they lie, from the project's root.

A page is used as it is. So a link is written once, as a path to a file, and works on a forge and on the site: the
handler below knows the links that the site alone has no page for, those to folders.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sphinx.addnodes import pending_xref

sys.path.insert(0, str(Path(__file__).parent))

from command_reference import reference

from schemas.version import __version__

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

project = "mluops"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

root_doc = "README"  # the start page; docs/site/contents.md gives it the table of contents
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = ["docs/site/contents.md"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3  # links to headings, named as forges name them
source_suffix = {".md": "markdown"}

smartquotes = False  # --out is no dash
default_role = "code"  # docstrings have names in single backticks
napoleon_use_ivar = True
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "mluops"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
templates_path = ["templates"]
html_additional_pages = {"index": "to_start.html"}

# Folder, as a page links to it -> the page of the site that lists what is in it.
FOLDERS: Final = {"docs/operators": "docs/site/operators", "docs/ci": "docs/ci/README"}


def _completed(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the table of contents of the site below the start page, and every command on the page of commands."""
    if page == app.config.root_doc:
        source[0] += "\n" + (Path(__file__).parent / "contents.md").read_text(encoding="utf-8")
    if page == "docs/site/commands":
        source[0] += "\n" + reference()


def _folders(app: Sphinx, document: nodes.document) -> None:
    """Let links to folders lead to the pages that list them."""
    for link in document.findall(pending_xref):
        if link["reftype"] != "myst":
            continue
        target = os.path.normpath(Path(link["refdoc"]).parent / link["reftarget"])
        if target in FOLDERS:
            link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", FOLDERS[target], None


def setup(app: Sphinx) -> None:
    """Connect the handlers."""
    app.connect("source-read", _completed)
    app.connect("doctree-read", _folders)
