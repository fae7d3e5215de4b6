"""How Sphinx builds the pages: offline, and a warning fails the build."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from _reference import write_reference  # noqa: E402

# Before Sphinx looks for pages: it is to find these among them.
write_reference(HERE, HERE / "reference")

project = "roundkit"
author = "the authors of roundkit"
copyright = "the authors of roundkit"  # noqa: A001
version = release = version_of("roundkit")

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_reference", "_static"]
nitpicky = True
smartquotes = False

myst_heading_anchors = 4

html_theme = "furo"
html_title = f"roundkit {version}"
html_static_path = ["_static"]
html_css_files = ["roundkit.css"]
html_copy_source = False
html_show_sphinx = False
