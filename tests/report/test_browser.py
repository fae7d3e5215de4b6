"""N04 and N05 in a real browser without a network: marks, silence, no request, no script but ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support.browser import Browser, Page, chromium, needs_chromium
from support.open_rounds import open_round_directory
from support.sample_evidence import sample_round

from roundkit.report import build_report
from roundkit.report.html import render_html
from roundkit.report.views import Heading, Table

pytestmark = needs_chromium

ROOT = Path(__file__).resolve().parents[2]
OWN = "window.owned=1"
HOSTILE = f"</script><script>{OWN}</script><img src=x onerror={OWN}><svg onload={OWN}> javascript:{OWN}"
VEGA = 'datum.constructor.constructor(\'window.owned=1\')() {"expr": "window.owned=1"}'
PLANTED = {
    "hypothesis": HOSTILE,
    "detail": f"{VEGA} {HOSTILE}",
    "path": "a'b\"<svg onload=owned()>.py",
    "entry": VEGA,
    "tail": HOSTILE,
}
REPORTS = (
    "audit_evidence",
    "explore_ledger",
    "pilot_report",
    "policy_report",
    "round_report",
    "waves_report",
)
SCREENS = {
    "wide light": {"width": 1280, "dark": False},
    "wide dark": {"width": 1280, "dark": True},
    "narrow light": {"width": 390, "dark": False},
    "narrow dark": {"width": 390, "dark": True},
}
A4_PX = 700
"""What A4 leaves between the margins of a browser, rounded down."""
MARKS = (
    "[...document.querySelectorAll('.rk-chart')].map(place => place.querySelectorAll("
    '\'g[class*="role-mark"] path, g[class*="role-mark"] line, g[class*="role-mark"] text\').length)'
)

CUT_OFF = """
[...document.querySelectorAll('.rk-chart svg')].flatMap(svg => {
    const room = svg.getBoundingClientRect()
    return [...svg.querySelectorAll('text')].filter(text => {
        const box = text.getBoundingClientRect()
        return box.right > room.right + 1 || box.left < room.left - 1
            || box.top < room.top - 1 || box.bottom > room.bottom + 1
    }).map(text => text.textContent)
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(network=False) as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed notebooks as pages; no notebook is run for them."""
    base = tmp_path_factory.mktemp("pages")
    for name in REPORTS:
        notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        (base / f"{name}.html").write_text(render_html(notebook, title=name))
    return base


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an open round in which every untrusted field is an attack."""
    base = tmp_path_factory.mktemp("hostile")
    sample = sample_round(text=PLANTED)
    folder = open_round_directory(base / "round", sample, measured=5, paused=HOSTILE)
    build_report(folder.root, base / "page.html")
    return base / "page.html"


def opened(browser: Browser, file: Path, **options: Any) -> Page:
    """Open a page, and wait until every chart on it is drawn or has failed."""
    page = browser.page(file.resolve().as_uri(), **options)
    page.wait_for(
        "document.readyState === 'complete' && [...document.querySelectorAll('.rk-chart')]"
        ".every(place => place.querySelector('svg') || place.classList.contains('rk-failed'))",
        "end of drawing",
    )
    return page


def check_quiet(page: Page, file: Path) -> None:
    assert page.evaluate("document.querySelectorAll('.rk-failed').length") == 0
    assert page.console == []
    assert page.requests == [file.resolve().as_uri()]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", REPORTS)
def test_n04_every_chart_has_marks_and_no_request_leaves(
    browser: Browser, pages: Path, tmp_path: Path, name: str, screen: str
) -> None:
    file, options = pages / f"{name}.html", SCREENS[screen]
    page = opened(browser, file, **options)
    marks = page.evaluate(MARKS)
    assert len(marks) >= 2
    assert min(marks) > 0
    assert page.evaluate(CUT_OFF) == []
    check_quiet(page, file)
    assert page.evaluate("document.documentElement.scrollWidth") <= options["width"]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not options["dark"]
    assert page.screenshot(tmp_path / "page.png", whole=True).stat().st_size > 50_000


@pytest.mark.parametrize("name", REPORTS)
def test_n04_the_accessibility_tree_names_charts_tables_and_controls(
    browser: Browser, pages: Path, name: str
) -> None:
    page = opened(browser, pages / f"{name}.html")
    nodes = page.accessibility()
    assert sum(role == "heading" for role, _ in nodes) >= 4
    charts = [words for role, words in nodes if role == "graphics-document"]
    assert len(charts) == page.evaluate("document.querySelectorAll('.rk-chart').length")
    # Vega names every mark with its values, so that a screen reader can walk a chart.
    assert sum(role == "graphics-symbol" and bool(words) for role, words in nodes) >= len(charts)
    named = {"graphics-document", "table", "button", "searchbox", "region"}
    unnamed = [role for role, words in nodes if role in named and not words]
    assert unnamed == []
    assert page.evaluate("document.documentElement.lang") == "en"


def test_n04_tables_sort_and_filter_by_keyboard(browser: Browser, pages: Path) -> None:
    page = opened(browser, pages / "round_report.html")
    page.evaluate("document.querySelector('.rk-sort').focus()")
    for wanted in ("ascending", "descending"):
        page.press("Enter")
        assert page.evaluate("document.querySelector('th').getAttribute('aria-sort')") == wanted
    rows = "[...document.querySelector('.rk-table table').tBodies[0].rows].filter(row => !row.hidden).length"
    everything = page.evaluate(rows)
    page.evaluate("document.querySelector('.rk-filter input').focus()")
    page.type("rejected")
    assert 0 < page.evaluate(rows) < everything
    assert page.evaluate("document.querySelector('.rk-filter output').textContent").startswith(
        f"{page.evaluate(rows)} of"
    )


def test_n04_what_is_printed_has_no_controls_and_shows_the_tables(browser: Browser, pages: Path) -> None:
    page = opened(browser, pages / "round_report.html", media="print", dark=True)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(details => details.open)")
    assert page.evaluate("getComputedStyle(document.querySelector('.rk-filter')).display") == "none"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", REPORTS)
def test_n04_what_is_printed_is_no_wider_than_the_paper(browser: Browser, pages: Path, name: str) -> None:
    """A browser shrinks all of a page that is wider, down to half: text of 10 points becomes unreadable."""
    page = opened(browser, pages / f"{name}.html", width=A4_PX, media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    wide = (
        f"[...document.querySelectorAll('table')].filter(e => e.getBoundingClientRect().right > {A4_PX} + 1)"
    )
    assert page.evaluate(f"{wide}.map(table => table.caption.textContent)") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= A4_PX


def test_n04_no_printed_line_of_a_notebook_is_cut_off_on_a_phone(browser: Browser, pages: Path) -> None:
    page = opened(browser, pages / "waves_report.html", width=390)
    assert page.evaluate(
        "[...document.querySelectorAll('.rk-stream')].map(e => e.scrollWidth - e.clientWidth)"
    ) == [0]


def test_n12_a_long_table_scrolls_under_its_headings_and_is_printed_whole(
    browser: Browser, tmp_path: Path
) -> None:
    table = Table("Numbers", (Heading("n", "number"),), tuple((number,) for number in range(999)))
    output = nbformat.v4.new_output("display_data", {"text/html": table.to_html()})
    cell = nbformat.v4.new_code_cell(outputs=[output])
    file = tmp_path / "long.html"
    file.write_text(render_html(nbformat.v4.new_notebook(cells=[cell]), title="long"))
    height = "document.querySelector('.rk-table').getBoundingClientRect().height"
    page = opened(browser, file)
    assert page.evaluate(height) < 800
    page.evaluate("document.querySelector('.rk-table').scrollTop = 5000")
    top = "document.querySelector('{}').getBoundingClientRect().top"
    assert abs(page.evaluate(top.format("th")) - page.evaluate(top.format(".rk-table"))) < 2
    assert opened(browser, file, media="print").evaluate(height) > 10_000


def test_n05_what_is_planted_in_every_untrusted_field_does_nothing(browser: Browser, hostile: Path) -> None:
    page = opened(browser, hostile)
    assert page.evaluate(f"document.body.textContent.includes({HOSTILE!r})")
    # Whatever a reader can do: open every table, sort by every column, point at every mark.
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    page.evaluate("document.querySelectorAll('.rk-sort').forEach(button => button.click())")
    page.evaluate(
        "document.querySelectorAll('.rk-chart svg path').forEach(mark => ['mousemove', 'mouseover', 'click']"
        ".forEach(kind => mark.dispatchEvent(new MouseEvent(kind, {bubbles: true}))))"
    )
    assert page.evaluate("typeof window.owned") == "undefined"
    assert (
        page.evaluate("document.querySelectorAll('main img, main iframe, main script:not([type])').length")
        == 0
    )
    check_quiet(page, hostile)
    assert min(page.evaluate(MARKS)) > 0
