"""One offline HTML file of an executed notebook: scripts inside, no network source, untrusted text inert."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from roundkit.core.resources import shipped
from roundkit.report.views import VEGA_MIME

_TEMPLATE = "report"
_HIDDEN_TAGS = frozenset({"parameters", "injected-parameters", "notebook-only", "remove-cell"})


@dataclass(frozen=True)
class ChartParts:
    """A chart as the page holds it.

    Attributes:
        title: Shown above it.
        subtitle: What it shows, and what it leaves out.
        description: What it says to a reader who cannot see it.
        spec: The specification without its title, as JSON that is safe inside a script element.
    """

    title: str
    subtitle: str
    description: str
    spec: str


def render_html(notebook: Any, *, title: str) -> str:
    """Return the page of an executed notebook.

    Args:
        notebook: An nbformat notebook; cells tagged ``parameters`` or ``notebook-only`` are left out.
        title: The page's title; untrusted.
    """
    from nbconvert.exporters import TemplateExporter

    exporter: Any = TemplateExporter(  # type: ignore[no-untyped-call]
        template_name=_TEMPLATE,
        extra_template_basedirs=[str(shipped("templates"))],
        template_file="index.html.j2",
    )
    exporter.file_extension = ".html"
    exporter.register_filter("chart_parts", chart_parts)
    visible = [cell for cell in notebook.cells if not _HIDDEN_TAGS & set(cell.metadata.get("tags", []))]
    drawn = any(VEGA_MIME in output.get("data", {}) for cell in visible for output in cell.get("outputs", []))
    bundle, script = chart_bundle() if drawn else "", _page_script()
    page = {"title": title, "cells": visible, "bundle": bundle, "script": script}
    body, _ = exporter.from_notebook_node(
        notebook, resources={"page": {**page, "policy": policy(bundle, script)}}
    )
    return str(body)


def chart_parts(spec: Any) -> ChartParts:
    """Split a chart's specification into words for the page and JSON for the script."""
    plain = json.loads(json.dumps(spec))
    title = plain.pop("title", {})
    words = {"text": title} if isinstance(title, str) else title
    return ChartParts(
        title=str(words.get("text", "")),
        subtitle=str(words.get("subtitle", "")),
        description=str(plain.get("description", "")),
        spec=script_json(plain),
    )


def script_json(value: Any) -> str:
    """Return JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(*scripts: str) -> str:
    """Return the Content-Security-Policy: exactly these scripts, styles inside, and no source anywhere.

    Args:
        scripts: The text of every script element that may run.
    """
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def chart_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, made once a process.

    Raises:
        ValueError: the script could end its own element, or would be changed by an HTML parser.
    """
    import vl_convert

    bundle = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    if "</script" in bundle.lower() or "<!--" in bundle or "\r" in bundle:
        raise ValueError("this version of vl-convert makes a bundle that cannot stand inside a page")
    return bundle


def _page_script() -> str:
    return (shipped("templates") / _TEMPLATE / "page.js").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
