"""The figures of the worked example, from the evidence of its rounds."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.result import Machine
from docs.shell import Ran

from roundkit.evidence.reader import find_evidence, open_evidence
from roundkit.models.ledger import CompositionStep, LaneRecord, RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.models.verdict import VerdictRecord

BEGIN, END = "<!-- example:begin -->", "<!-- example:end -->"
MEASURE = "roundkit measure"
_ABSENT = "—"
_WIDTH = 118
"""Of a line of the page, tables excepted."""


@dataclass(frozen=True)
class Replayed:
    """A replayed round: its frozen plan and what came of it."""

    plan: RoundPlan
    ledger: RoundLedger

    @classmethod
    def read(cls, folder: Path) -> Replayed:
        """Read the one round that lies in a folder."""
        (found,) = find_evidence(folder / "evidence")
        evidence = open_evidence(found)
        return cls(evidence.plan, evidence.ledger)

    def part(self, lane: LaneRecord) -> str:
        """Return what the lane's one commit is called."""
        hypothesis = next(row.hypothesis for row in self.plan.campaign.search_plan if row.id == lane.entry)
        return hypothesis.partition(" ")[2].partition(": ")[2]


def figures(rounds: Sequence[Replayed], ran: Sequence[Ran], machine: Machine) -> str:
    """Return what stands between the page's markers."""
    judged, agreed = rounds
    parts = [
        "Every answer judged:",
        _table(judged),
        "Only answers judged on which the releases agree:",
        _table(agreed),
    ]
    parts += [_steps(agreed), _whole(agreed), _sides(ran, machine)]
    return "\n\n".join(parts)


def _table(replayed: Replayed) -> str:
    rows = [
        "| part | alone, against the old release | 95 % interval | verdict | kept |",
        "| --- | --- | --- | --- | --- |",
    ]
    for lane in replayed.ledger.lanes:
        ticket = next(row for row in replayed.ledger.tickets if row.lane == lane.lane)
        verdict = ticket.verdict
        cells = (
            replayed.part(lane),
            percent(verdict.gain if verdict else None),
            interval(verdict),
            in_a_cell(verdict) if verdict else ticket.state,
            "yes" if lane.outcome == "composed" else "no",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _steps(replayed: Replayed) -> str:
    rows = ["Laid on one another, largest gain first:", ""]
    rows += [
        "| step | against what was there before | 95 % interval | of its gain alone | kept |",
        "| --- | --- | --- | --- | --- |",
    ]
    lanes = {lane.lane: replayed.part(lane) for lane in replayed.ledger.lanes}
    for step in replayed.ledger.composition:
        kept = "yes" if step.kept else "no"
        cells = (
            f"{step.step}. {lanes[step.lane]}",
            percent(step.verdict.gain),
            interval(step.verdict),
            _ratio(step),
            kept,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _ratio(step: CompositionStep) -> str:
    ratio = step.ratio
    if ratio is None or ratio.value is None:
        return _ABSENT
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _whole(replayed: Replayed) -> str:
    """Return what the kept parts give together; of a rerun and a fallback the last decides."""
    if not replayed.ledger.rerun:
        return "Nothing was kept, so that nothing was measured once more."
    verdict = replayed.ledger.rerun[-1].verdict
    return _wrapped(
        f"The kept parts together, measured once more against the old release: {percent(verdict.gain)} "
        f"({interval(verdict)}), {milliseconds(verdict.baseline_median)} before and "
        f"{milliseconds(verdict.candidate_median)} after."
    )


def _sides(ran: Sequence[Ran], machine: Machine) -> str:
    """Return what surrounds the figures: releases, audits, time, machine."""
    told = "\n".join(row.output for row in ran)
    differ = re.findall(r"^the (releases differ in .*); ", told, re.MULTILINE)[0]
    whole = next(row.output.strip().splitlines()[-1] for row in ran if row.command.startswith(MEASURE))
    audits = told.count("audit: every check passed")
    spent = ", ".join(f"`{' '.join(row.command.split()[:2])}` {row.wall_s / 60:.1f}" for row in ran)
    before, after = machine.load_before[0], machine.load_after[0]
    return "\n".join(
        _wrapped(line)
        for line in (
            f"- The whole new release against the old one, by `{MEASURE}`: {whole}.",
            f"- The {differ}.",
            f"- Audits in which every check passed: {audits} of 2.",
            f"- Minutes: {spent}.",
            f"- Measured on {machine.date_utc}: {machine.cpu_model}, {machine.cores} cores, Linux "
            f"{machine.kernel}, Python {machine.python}, "
            f"load average {before:.1f} before and {after:.1f} after.",
        )
    )


def _wrapped(line: str) -> str:
    """Return a sentence, or a row of a list, in lines of the page's width."""
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def in_a_cell(verdict: VerdictRecord) -> str:
    """Return a verdict in words, as a cell of a table holds them."""
    said = " ".join(verdict.sentence.removeprefix(f"{verdict.verdict}: ").split())
    return f"{verdict.verdict}: {said}".replace("|", "\\|")


def percent(gain: float | None) -> str:
    """Return a fraction in percent, with its sign."""
    return _ABSENT if gain is None else f"{100 * gain:+.1f} %"


def interval(verdict: VerdictRecord | None) -> str:
    """Return a verdict's interval."""
    if verdict is None or verdict.low is None or verdict.high is None:
        return _ABSENT
    return f"{percent(verdict.low)} to {percent(verdict.high)}"


def milliseconds(value: float | None) -> str:
    """Return a time."""
    return _ABSENT if value is None else f"{value:.0f} ms"
