"""The built pages in a real browser without a network: they ask nobody for anything, and fit on a phone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import Browser, chromium, needs_chromium

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index", "how-to/rounds", "explanation/two-sigma", "performance", "reference/codes", "reference/frames",
    "reference/files/round", "reference/commands/index", "reference/python",
)  # fmt: skip
pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [
        "-q",
        "-W",
        "--keep-going",
        "-n",
        "-b",
        "html",
        "-d",
        folder / "trees",
        ROOT / "docs",
        folder / "html",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(network=False) as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_nobody_and_fits_on_a_phone_in_light_and_dark(
    site: Path, browser: Browser, name: str
) -> None:
    page = browser.page((site / f"{name}.html").as_uri())
    for dark in (False, True):
        for width in (1280, 390):
            page.resize(width, 844)
            page.prefer(dark=dark)
            wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(wider) == 0, (name, width)
    assert [asked for asked in page.requests if not asked.startswith(("file:", "data:"))] == []
    assert page.console == []
    page.close()
