"""Each code that roundkit can print or record has one meaning, in one place; and nothing else has one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import pytest
import typer
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.core.codes import FAMILIES, all_codes, codes_named
from roundkit.core.errors import Refused
from roundkit.models.agent_run import AgentEnd
from roundkit.models.lane import TicketState
from roundkit.models.ledger import LaneOutcome, RejectCause
from roundkit.models.pilot_findings import FailureClass
from roundkit.models.search_plan import EntryStatus
from roundkit.stats.verdict import Verdict
from roundkit.waves.locks import Half

PACKAGE = Path(__file__).resolve().parents[2] / "roundkit"
REFUSING = {"refuse", "Refusal", "problem", "hold_lock"}
"""Called with a code first, or as ``code=``."""
BREAKING = {"MeasurementBroke", "refuse_problem", "Lost", "lose"}
WITHOUT_OWN = {
    "core/errors.py", "core/canonical.py", "evidence/problem.py", "rounds/locks.py", "waves/locks.py",
    "rounds/prepare_presets.py", "rules/agent_refusals.py", "pilots/review.py", "measure/trial.py",
}  # fmt: skip
"""Files with a call whose code its own caller gives, or with another function of such a name."""


def texts(node: ast.expr | None) -> set[str]:
    """Return the texts that an expression may be: its own, or those of either branch."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=body, orelse=orelse):
            return texts(body) | texts(orelse)
    return set()


def calls(folder: Path, names: set[str]) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of one of these functions, with its file."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in names:
                    yield path.relative_to(PACKAGE).as_posix(), node


def given(call: ast.Call, position: int = 0, key: str = "code") -> ast.expr | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg == key]
    return named[0] if named else call.args[position] if len(call.args) > position else None


def meant(family: str) -> set[str]:
    return {code.code for code in all_codes() if code.family == family}


def test_every_code_of_a_refusal_has_a_meaning_and_every_meaning_a_code() -> None:
    raised: set[str] = set()
    unclear: set[str] = set()
    for file, call in calls(PACKAGE, REFUSING):
        found = texts(given(call))
        raised |= found
        if not found and file not in WITHOUT_OWN:
            unclear.add(f"{file}:{call.lineno}")
    of_the_wrapper = calls(PACKAGE / "rounds", {"Refused"})
    raised |= set().union(
        *(texts(given(call)) for file, call in of_the_wrapper if file.endswith("lane_wrapper.py"))
    )
    passed_on = {
        "attempt-cancelled",
        "paused-already",
        "not-paused",
        *(f"{half}-running" for half in get_args(Half)),
    }
    assert (raised | passed_on) - meant("rejections") == meant("refusals") - meant("rejections")
    assert unclear == set()


def test_every_way_in_which_a_measurement_breaks_has_a_meaning() -> None:
    broke = set().union(*(texts(given(call, key="reason")) for _, call in calls(PACKAGE, BREAKING)))
    refused = set().union(
        *(texts(given(call, 1, "reason")) for _, call in calls(PACKAGE / "measure" / "cluster", {"refused"}))
    )
    in_code = {"disk-full", "host-error", "worker-error"}
    assert broke | refused | in_code == meant("infrastructure")


def test_every_problem_of_a_trial_has_a_meaning() -> None:
    problems = set().union(*(texts(given(call)) for _, call in calls(PACKAGE / "measure", {"Problem"})))
    assert problems | {"clock", "build", "smoke", "import-path"} == meant("trials")


def test_every_reason_of_a_verdict_has_a_meaning() -> None:
    source = (PACKAGE / "stats" / "verdict.py").read_text()
    decided = set(re.findall(r'[(n] ?"(?:pass|fail|not-measured)", "([a-z-]+)"', source)) | {
        "futility",
        "within-noise",
    }
    unmeasured = set().union(*(texts(given(call)) for _, call in calls(PACKAGE, {"unmeasured"})))
    recorded = set().union(*(texts(given(call, 3)) for _, call in calls(PACKAGE, {"record_unmeasured"})))
    elsewhere = {"guard:NAME", "candidate-clock", "same-files"}
    assert decided | unmeasured | recorded | elsewhere == meant("verdicts")


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("words", Literal[Verdict, TicketState, EntryStatus]),
        ("rejections", RejectCause),
        ("lanes", LaneOutcome),
        ("agents", AgentEnd),
        ("findings", FailureClass),
    ],
)
def test_closed_lists_have_a_meaning_a_word(family: str, words: object) -> None:
    assert meant(family) == set(get_args(words))


def test_every_check_of_an_audit_says_what_it_compares() -> None:
    named = set().union(*(texts(given(call)) for _, call in calls(PACKAGE / "audit", {"conclude", "Check"})))
    assert named == meant("audit")


def test_meanings_are_sentences_and_nothing_has_two() -> None:
    assert {code.family for code in all_codes()} == FAMILIES.keys()
    assert len({(code.family, code.code) for code in all_codes()}) == len(all_codes())
    assert [code.code for code in all_codes() if code.meaning[-1] not in ".)"] == []
    assert [code.code for code in all_codes() if code.family != "audit" and not code.remedy] == []
    commands = {word for code in all_codes() for word in re.findall(r"`roundkit ([a-z]+)", code.remedy)}
    assert commands <= set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_explain_says_what_a_printed_code_means() -> None:
    def said(code: str) -> str:
        return CliRunner().invoke(app, ["explain", code]).output

    assert "Give each path to one lane" in said("[scope-overlap]")
    assert "time limit" in said("candidate-overrun")
    assert "guard metric" in said("guard:peak_mb")
    assert said("late").startswith("late: ")
    assert {each.family for each in codes_named("build")} == {"trials", "rejections"}
    assert said("pass").startswith("pass: A verdict")
    assert {each.family for each in codes_named("invalid")} == {"words", "trials"}
    for mistaken, meant_code in (("scope-overlaps", "scope-overlap?"), ("aa_intervall", "A/A interval")):
        refused = CliRunner().invoke(app, ["explain", mistaken]).exception
        assert isinstance(refused, Refused)
        assert meant_code in str(refused)
