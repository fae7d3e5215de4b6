"""A small, complete, synthetic round: numbers from a seeded generator, decisions from the real rules.

Only the times, commits and samples are invented. Whatever a rule decides (schedule, verdict, selection,
order, ratio, names, digests) is decided here by that rule, so that an audit of the exported folder passes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from support.sample.bench import SampleBench, measure_aa
from support.sample.composition import compose
from support.sample.lanes import STANDARD_LANES, Lane
from support.sample.plan import EPOCH, invented_commit, sample_plan
from support.sample.tickets import sample_tickets

from roundkit import __version__
from roundkit.core.canonical import digest_bytes
from roundkit.evidence import export_round
from roundkit.models.attempts import AttemptRecord, Cost
from roundkit.models.campaign import Direction
from roundkit.models.evidence import SecretReveal
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import RejectedSubmission, RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec
from roundkit.rules.attempts import account, next_binding
from roundkit.rules.outcome import STATEMENT, ending_of, lane_records
from roundkit.rules.run_spec import run_spec_of
from roundkit.rules.selection import select_tickets


@dataclass
class SampleRound:
    """Everything that an export takes."""

    plan: RoundPlan
    run_spec: RunSpec
    secret: bytes
    ledger: RoundLedger
    experiments: list[ExperimentRecord]
    blobs: dict[str, bytes]
    events: list[dict[str, Any]]


def sample_round(
    lanes: tuple[Lane, ...] = STANDARD_LANES,
    *,
    round_id: str = "r01",
    campaign_id: str = "demo",
    seed: int = 1,
    incumbent: str | None = None,
    harness: str = "command",
    provenance: str = "scripted",
    text: Mapping[str, str] | None = None,
    opened: datetime = EPOCH,
    forgeable: bool = False,
    fresh_standalone: bool = False,
    rerun_gain: float | None = None,
    direction: Direction = "lower",
    counted: bool = False,
    incumbent_evidence: str | None = None,
) -> SampleRound:
    """Run the scripted lanes through the rules.

    Args:
        lanes: What each lane submits.
        round_id: Name of the round.
        campaign_id: Name of the campaign.
        seed: Seed of the noise, and of the coordinator's secret.
        incumbent: I0; invented from the round's name when not given.
        harness: Harness that the plan names.
        provenance: What the tickets claim to come from.
        text: Untrusted text by field (``hypothesis``, ``detail``, ``path``, ``entry``, ``tail``), planted
            in place of the harmless one.
        opened: When the round was frozen.
        forgeable: Whether the benchmark is one process.
        fresh_standalone: Whether the plan measures composed lanes alone once more.
        rerun_gain: True gain that the final rerun finds; what the steps add up to when not given.
        direction: Which way of the metric is better.
        counted: Whether instructions decide, counted by valgrind.
        incumbent_evidence: Which round the campaign says made I0.
    """
    secret = digest_bytes(f"secret {round_id} {seed}".encode()).encode()[:32]
    plan = sample_plan(
        lanes, round_id, campaign_id, incumbent or invented_commit("incumbent", round_id), harness, secret,
        text or {}, opened, forgeable, fresh_standalone, direction, counted,
    )  # fmt: skip
    state = plan.campaign.search_state.model_copy(update={"incumbent_evidence": incumbent_evidence})
    plan = plan.model_copy(update={"campaign": plan.campaign.model_copy(update={"search_state": state})})
    bench = SampleBench(plan, run_spec_of(plan), secret, random.Random(seed), text or {}, rerun_gain)
    for devices in plan.device_sets:
        bench.free[devices.id] = opened + timedelta(minutes=2)
    aa = [measure_aa(bench, 1, [])]
    tickets, blobs = sample_tickets(bench, lanes, provenance, aa)
    steps, rerun = compose(bench, lanes, tickets)
    attempts = _attempts(bench, provenance)
    ending = ending_of(rerun)
    selected = select_tickets(tickets, [lane.id for lane in plan.lanes])
    accepted = ending.accepted
    advanced = accepted is not None
    closed = max(bench.free.values()) + timedelta(minutes=1)
    bench.say(closed, "closed", head=accepted.commit if accepted else plan.incumbent, advanced=advanced)
    ledger = RoundLedger(
        format="roundkit-round-ledger/1", round_id=round_id, round_digest=plan.digest(),
        campaign_id=campaign_id, incumbent=plan.incumbent,
        head=accepted.commit if accepted else plan.incumbent,
        head_tree=accepted.tree if accepted else plan.incumbent_tree, advanced=advanced,
        opened_utc=opened, closed_utc=closed,
        lanes=lane_records(plan, tickets, selected, steps, ending, attempts),
        attempts=tuple(attempts),
        tickets=tuple(tickets),
        rejected_submissions=(
            RejectedSubmission(
                lane=lanes[-1].id, entry=bench.text.get("entry", "not-a-digest"), cause="malformed",
                detail=bench.text.get("detail", "manifest.json: not strict JSON"),
                intake_utc=opened + timedelta(minutes=9),
            ),
        ),
        aa_checks=tuple(aa), order=tuple(step.lane for step in steps), composition=tuple(steps),
        rerun=tuple(rerun), gain=accepted.verdict.gain if accepted else None, statement=STATEMENT,
    )  # fmt: skip
    for rejected in ledger.rejected_submissions:
        told = {"lane": rejected.lane, "entry": rejected.entry, "cause": rejected.cause}
        bench.say(rejected.intake_utc, "submission-rejected", **told)
    bench.events.sort(key=lambda event: event["time"])
    return SampleRound(plan, bench.spec, secret, ledger, bench.records, blobs, bench.events)


def export_sample(target: Path, sample: SampleRound, scratch: Path, *, previous: str | None = None) -> Path:
    """Export a sample round to ``target`` (blobs are staged in ``scratch``) and return ``target``."""
    scratch.mkdir(parents=True, exist_ok=True)
    for digest, data in sample.blobs.items():
        (scratch / digest).write_bytes(data)
    export_round(
        target,
        plan_bytes=sample.plan.to_bytes(),
        ledger=sample.ledger,
        run_spec=sample.run_spec,
        secret=SecretReveal(format="roundkit-secret/1", secret_hex=sample.secret.hex()),
        experiments=sample.experiments,
        blobs={digest: scratch / digest for digest in sample.blobs},
        events=sample.events,
        previous=previous,
        exported_utc=sample.ledger.closed_utc + timedelta(seconds=5),
        tool_version=__version__,
    )
    return target


def _attempts(bench: SampleBench, provenance: str) -> list[AttemptRecord]:
    """Let every lane's agent run once; the last lane's dies on the way and is run again."""
    plan = bench.plan
    attempts: list[AttemptRecord] = []
    for number, lane in enumerate([*plan.lanes, plan.lanes[-1]]):
        binding = next_binding(plan.digest(), account(lane, attempts), "run-1")
        dies = number == len(plan.lanes) - 1
        begins = plan.frozen_utc + timedelta(minutes=2, seconds=number)
        attempts.append(
            AttemptRecord(
                binding=binding, phase="claimed" if dies else "settled", provenance=provenance,
                reserved_utc=begins, claimed_utc=begins + timedelta(seconds=1),
                ended_utc=None if dies else begins + timedelta(minutes=10),
                actual=None if dies else Cost(turns=7, tokens=21_000, micro_usd=400_000, wall_s=599),
            )
        )  # fmt: skip
        told = {"lane": lane.id, "ordinal": binding.ordinal, "run_id": binding.run_id}
        bench.say(begins, "attempt-reserved", **told)
        bench.say(begins + timedelta(seconds=1), "attempt-claimed", **told)
        if not dies:
            bench.say(begins + timedelta(minutes=10), "attempt-settled", **told)
    return attempts
