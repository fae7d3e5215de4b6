"""P09: the reviewer's desk in a notebook: packet, diff, buttons, and no label anywhere on the screen."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support.pilot_folders import RECOVERED, REVIEWER, drift_pilot, eligibility_of, trial_of
from support.synthetic import reachable_folder

from roundkit.core.errors import Refused
from roundkit.core.resources import shipped
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.pilots.packet import Packet, find_packet, make_packet
from roundkit.pilots.review import read_state
from roundkit.report.parameters import read_parameters
from roundkit.rules.pilot_labels import labels_of
from roundkit.widgets import ReviewDesk, packet_table, review_desk
from roundkit.widgets.diff_view import diff_view

DIFF = b"""diff --git before/alerts.py after/alerts.py
index 1..2 100644
--- before/alerts.py
+++ after/alerts.py
@@ -1,2 +1,2 @@
-def alert(text):  # <script>alert(1)</script>
+def alert(text, urgent=True):
     return "x"
diff --git before/new.txt after/new.txt
new file mode 100644
--- /dev/null
+++ after/new.txt
@@ -0,0 +1 @@
+\x1b[31mred
"""


@pytest.fixture(scope="module")
def pilot_once() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield drift_pilot(folder)


@pytest.fixture
def pilot(pilot_once: Path, tmp_path: Path) -> Path:
    """A copy in a place with spaces and letters beyond ASCII."""
    return shutil.copytree(pilot_once, tmp_path / "Läufe 数" / "the pilot", symlinks=True)


@pytest.fixture
def packet(pilot: Path) -> Packet:
    return make_packet(pilot, RECOVERED)


def screen(desk: ReviewDesk) -> str:
    """Return everything that the desk shows, widgets included."""
    shown = [desk.snapshot().text, desk.snapshot().markup, desk._status.value, desk._answer.value]
    return "\n".join([*map(str, shown), *(str(section.value) for section in desk._sections.values())])


def press(desk: ReviewDesk, label: str) -> None:
    desk._buttons[label].click()


def able(desk: ReviewDesk) -> set[str]:
    return {label for label, button in desk._buttons.items() if not button.disabled}


def test_p09_a_reviewer_goes_from_start_to_finish_by_buttons(pilot: Path, packet: Packet) -> None:
    desk = review_desk(pilot, packet.code, REVIEWER)
    assert able(desk) == {"Start"}
    assert "alerts.py" not in screen(desk)
    press(desk, "Start")
    assert able(desk) == {"Pause", "Finish"}
    assert "alerts.py" in screen(desk)
    press(desk, "Pause")
    assert able(desk) == {"Resume", "Finish"}
    press(desk, "Resume")
    press(desk, "Finish")
    assert "[no-judgement]" in desk._answer.value
    desk._judgement.value, desk._blinded.value, desk._note.value = "accept", True, "as the rubric asks"
    press(desk, "Finish")
    assert "of active time" in desk._answer.value
    assert able(desk) == set()
    review = read_state(find_packet(pilot, packet.code)).review
    assert review is not None
    assert (review.judgement, review.note, len(read_state(packet).marks)) == (
        "accept",
        "as the rubric asks",
        2,
    )
    assert eligibility_of(pilot, RECOVERED).eligible


def test_p09_no_screen_shows_a_label_or_a_tuple(pilot: Path, packet: Packet) -> None:
    desk = review_desk(pilot, packet.code, REVIEWER)
    press(desk, "Start")
    shown = screen(desk) + packet_table(pilot).text + desk.sentence()
    assert packet.code in shown
    for label in labels_of(PilotReader(pilot).plan()):
        assert label not in shown.replace("explain", "").replace("-plain", ""), label


def test_p09_a_new_kernel_finds_the_review_as_it_is(pilot: Path, packet: Packet) -> None:
    press(review_desk(pilot, packet.code, REVIEWER), "Start")
    again = review_desk(pilot, packet.code, REVIEWER)
    assert able(again) == {"Pause", "Finish"}
    assert again.sentence() == f"{packet.code}: running"


def test_p09_what_cannot_be_reviewed_is_said(pilot: Path, packet: Packet) -> None:
    with pytest.raises(Refused, match=r"\[no-packet\]"):
        review_desk(pilot, "packet-00000000", REVIEWER)
    with pytest.raises(Refused, match=r"\[no-pilot\]"):
        review_desk(pilot / "nothing", packet.code, REVIEWER)
    nobody = review_desk(pilot, packet.code, "")
    press(nobody, "Start")
    assert "[no-reviewer]" in nobody._answer.value
    (trial_of(pilot, RECOVERED) / "review/packet/candidate.diff").write_text("x")
    with pytest.raises(Refused, match=r"\[stale-packet\]"):
        review_desk(pilot, packet.code, REVIEWER)


def test_p09_a_diff_has_colours_and_nothing_in_it_runs() -> None:
    piece = diff_view(DIFF)
    assert "<script>" not in piece.markup
    assert '<span class="rk-code-k">def</span>' in piece.markup
    assert piece.markup.count('class="rk-added"') == 2
    assert piece.markup.count('class="rk-removed"') == 1
    assert "\x1b" not in piece.markup + piece.text
    assert "new.txt · new file mode 100644" in piece.text
    assert "before" not in piece.text
    assert "changes nothing" in diff_view(b"").text
    long = diff_view(b"diff --git a/x a/x\n" + b"+1\n" * 6_000)
    assert "1,001 more lines are left out" in long.text


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\r", "\x1c", "\x85", "\u2028", "\u2029"])
def test_p09_a_candidates_line_cannot_pass_for_another_file_or_hide(end: str) -> None:
    forged = f"+x = 1{end}diff --git before/doc.md after/doc.md{end}index steal(){end}-y = 2"
    piece = diff_view(f"diff --git before/a b.py after/a b.py\n@@ -1 +1 @@\n{forged}\n".encode())
    plain = re.sub("<[^>]*>", "", piece.markup)
    assert plain.startswith("a b.py@@"), "the one file, by its whole name"
    assert "index steal()" in plain
    assert piece.markup.count("<h3>") == piece.markup.count('class="rk-added"') == 1
    assert "rk-removed" not in piece.markup
    assert end not in piece.markup + piece.text


def test_p09_what_is_cut_off_a_long_line_is_said() -> None:
    piece = diff_view(b"diff --git before/a after/a\n@@ -1 +1 @@\n+" + b" " * 2_000 + b"steal()\n")
    assert "7 more characters are left out here" in piece.markup
    assert "left out" not in diff_view(b"diff --git before/a after/a\n+" + b"x" * 2_000 + b"\n").markup


@pytest.mark.slow
def test_p09_the_notebook_runs_unattended(pilot: Path, packet: Packet, tmp_path: Path) -> None:
    press(review_desk(pilot, packet.code, REVIEWER), "Start")
    for given, sentence in (
        ([], "no packet was chosen"),
        (["-p", f"packet={packet.code}", "-p", f"reviewer={REVIEWER}"], f"{packet.code}: running"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "roundkit", "notebook", "review", "-p", f"pilot={pilot}", *given,
             "--out", tmp_path / "out.ipynb"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert sentence in done.stdout
    executed: Any = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    outputs = json.dumps([cell.get("outputs", []) for cell in executed.cells])
    assert "alerts.py" in outputs
    assert RECOVERED not in outputs
    assert str(tmp_path) not in json.dumps(executed)


def test_n03_the_review_notebook_is_committed_without_outputs() -> None:
    source: Any = nbformat.read(shipped("notebooks") / "review.ipynb", as_version=4)
    code = [cell for cell in source.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and cell.outputs == [] for cell in code)
    assert all("def " not in cell.source for cell in code)
    assert [each.name for each in read_parameters(source, place="review")] == ["pilot", "packet", "reviewer"]
