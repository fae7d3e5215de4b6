"""The control room in a real JupyterLab, driven by a real browser, over a real serve."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from support.browser import Page, chromium, needs_chromium
from support.jupyter import command, jupyter_lab, open_notebook, restart_kernel, run_all, theme
from support.killing import environment, wait_for
from support.synthetic import knob, scripted_lane

from roundkit.core.resources import shipped
from roundkit.rounds.control_room import read_room
from roundkit.rounds.layout import RoundFolder
from roundkit.widgets.actions import PAUSED_HERE

pytestmark = [pytest.mark.slow, needs_chromium]

ROOM = ".rk-widget"
BUTTONS = ".rk-buttons button"


@pytest.fixture
def lab(odd_round: RoundFolder, odd_place: Path, lease_root: Path) -> Iterator[Page]:
    """The shipped notebook, with the round as its parameter, open and run in JupyterLab."""
    notebook = nbformat.read(shipped("notebooks") / "control.ipynb", as_version=4)
    parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.tags)
    parameters.source = f"round_dir: str = {str(odd_round.root)!r}\nrefresh_s: float = 0.2"
    home = odd_place / "notebooks of somebody"
    home.mkdir()
    nbformat.write(notebook, home / "control.ipynb")
    with jupyter_lab(home, environment(lease_root)) as address, chromium() as browser:
        page = browser.page(width=1400, height=1000)
        open_notebook(page, address, "control.ipynb")
        run_all(page)
        page.wait_for_text(ROOM, "Round r01 of campaign knobs")
        yield page


def show(page: Page, name: str) -> None:
    """Keep a picture where ROUNDKIT_PICTURES names a folder, for people to look at."""
    if folder := os.environ.get("ROUNDKIT_PICTURES"):
        page.screenshot(Path(folder) / f"{name}.png")


def test_n06_buttons_reach_serve_and_a_restarted_kernel_finds_it(lab: Page, odd_round: RoundFolder) -> None:
    page = lab
    page.wait_for_text(ROOM, "No serve runs; no ticket waits.")
    page.click(BUTTONS, "Drain")
    page.wait_for_text("[role=alert]", "no serve runs for this round [no-serve]")
    page.wait_for_text(".rk-remedy", "there is nothing to drain")
    page.click(BUTTONS, "Start serve")
    page.wait_for_text("[role=status]", "Read back: serve runs, pid")
    serve = read_room(odd_round).status.serve
    assert serve is not None
    page.wait_for_text(ROOM, f"Serve ({serve}) waits for submissions.")

    page.click(BUTTONS, "Pause")
    page.wait_for_text("[role=status]", f"Read back: the queue is paused: {PAUSED_HERE}.")
    ticket = scripted_lane(odd_round.clone("L1"), {"knobs/L1.json": knob(0.5)})["ticket"]
    page.wait_for_text(f"{ROOM} td", ticket)
    assert read_room(odd_round).status.paused == PAUSED_HERE
    assert read_room(odd_round).measuring == ()

    restart_kernel(page)
    run_all(page)
    page.wait_for_text(ROOM, f"The queue is paused: {PAUSED_HERE}.")
    assert read_room(odd_round).status.serve == serve

    page.click(BUTTONS, "Resume")
    page.wait_for_text("[role=status]", "Read back: the queue goes on once one new A/A check has passed.")
    page.wait_for_text(f"{ROOM} td", "measured")
    page.wait_for_text(f"{ROOM} .rk-verdict", "pass")
    show_everything(page)
    page.click(BUTTONS, "Drain")
    page.wait_for_text("[role=status]", "Read back: serve ends after what is being measured now.")
    page.wait_for_text(ROOM, "No serve runs; no ticket waits.")

    page.click(BUTTONS, "Close…")
    page.wait_for_text("[role=alert]", "Closing decides the round")
    show(page, "question")
    page.click(BUTTONS, "Leave it")
    shown = "e => e.offsetParent && e.innerText == 'Leave it'"
    page.wait_for(f"![...document.querySelectorAll('{BUTTONS}')].some({shown})", "the question's end")
    page.click(BUTTONS, "Close…")
    page.click(BUTTONS, "Close now")
    page.wait_for_text(ROOM, "Closed: new incumbent")
    page.wait_for_text(ROOM, "1, by construction")
    show(page, "closed")
    assert read_room(odd_round).closing.advanced
    # JupyterLab says so itself when a kernel is restarted.
    assert [line for line in page.console if not line.startswith("Connection lost")] == []


def show_everything(page: Page) -> None:
    """Keep pictures of light and dark, wide and narrow."""
    for name in ("Light", "Dark"):
        theme(page, f"JupyterLab {name}")
        command(page, "application:toggle-left-area")
        for size, width in (("wide", 1400), ("narrow", 620)):
            page.resize(width, 1500)
            show(page, f"{name.lower()}-{size}")
        command(page, "application:toggle-left-area")
    page.resize(1400, 1000)
    theme(page, "JupyterLab Light")


@pytest.mark.parametrize("key", ["Enter", " "])
def test_n06_the_keyboard_alone_pauses_a_round(lab: Page, odd_round: RoundFolder, key: str) -> None:
    page = lab
    page.evaluate("document.querySelector('.rk-buttons button').focus()")
    focused = "document.activeElement.innerText"
    for _ in range(3):
        if page.evaluate(focused) == "Pause":
            break
        page.press("Tab")
    assert page.evaluate(focused) == "Pause"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.press(key)
    page.wait_for_text("[role=status]", f"Read back: the queue is paused: {PAUSED_HERE}.")
    assert read_room(odd_round).status.paused == PAUSED_HERE
    wait_for(lambda: page.evaluate(focused) == "Pause", "the focus back on its button")
