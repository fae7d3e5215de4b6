"""Pieces of a notebook: untrusted text is inert, missing is said, and nothing depends on colour."""

from __future__ import annotations

import pytest

from roundkit.widgets import pieces

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m"


@pytest.mark.parametrize(
    "piece",
    [
        pieces.table(HOSTILE, (HOSTILE,), [(HOSTILE,)], empty=""),
        pieces.table("", ("a",), [], empty=HOSTILE),
        pieces.facts([(HOSTILE, HOSTILE)]),
        pieces.sentence(HOSTILE, "bad", remedy=HOSTILE),
        pieces.folded(HOSTILE, pieces.listing(HOSTILE)),
        pieces.titled(HOSTILE, pieces.Piece(pieces.tree(pieces.tree_of([f"a/{HOSTILE}", HOSTILE])), "")),
        pieces.Piece(pieces.element("p", "x", title=f'"{HOSTILE}'), ""),
        pieces.Piece(pieces.code(HOSTILE), ""),
    ],
)
def test_fault_32_untrusted_text_is_inert(piece: pieces.Piece) -> None:
    assert "<script" not in piece.markup
    assert "<img" not in piece.markup
    for hidden in ("\u202e", "\x1b"):
        assert hidden not in piece.markup
        assert hidden not in piece.text


def test_n10_a_missing_value_is_a_dash_and_never_zero() -> None:
    found = pieces.table("t", ("#gain", "verdict"), [(pieces.percent(None), pieces.verdict(None))], empty="")
    assert found.markup.count('<span class="rk-none" aria-label="none">–</span>') == 2
    assert found.text.splitlines()[-1] == "– | –"


def test_a_verdict_has_a_sign_and_a_word() -> None:
    for name in ("pass", "fail", "not-measured", "invalid"):
        shown = pieces.table("t", ("verdict",), [(pieces.verdict(name),)], empty="")
        assert name in shown.text
        assert shown.text.splitlines()[-1].removesuffix(name).strip()


def test_a_tree_nests_folders() -> None:
    found = pieces.tree(pieces.tree_of(["a/b/c.py", "a/d.py", "e.py"]))
    assert found.count("<details") == 2
    assert found.index("c.py") < found.index("d.py") < found.index("e.py")
