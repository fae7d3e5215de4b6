"""The tickets of a sample round: what its lanes submitted, taken in and measured."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from support.sample.bench import SampleBench, measure_aa, measure_until_decided
from support.sample.lanes import Lane, Submission
from support.sample.plan import invented_commit

from roundkit.core.canonical import digest_bytes
from roundkit.models.lane import Manifest, ManifestEntry
from roundkit.models.ledger import AaCheck, CommandLog, TicketRecord
from roundkit.rules.identity import ticket_key, ticket_name
from roundkit.rules.verdict import decide, unmeasured


def sample_tickets(
    bench: SampleBench, lanes: tuple[Lane, ...], provenance: str, aa: list[AaCheck]
) -> tuple[list[TicketRecord], dict[str, bytes]]:
    tickets: list[TicketRecord] = []
    blobs: dict[str, bytes] = {}
    measured = 0
    sequence = 0
    for turn in range(max(len(lane.submissions) for lane in lanes)):
        for lane in lanes:
            if turn >= len(lane.submissions):
                continue
            sequence += 1
            ticket = _ticket(bench, lane, turn, sequence, provenance, blobs)
            tickets.append(ticket)
            ran = ticket.state == "measured" and bool(ticket.experiments)
            measured += ran
            if ran and measured % bench.plan.aa_interval == 0:
                aa.append(measure_aa(bench, len(aa) + 1, aa))
    return tickets, blobs


def _ticket(
    bench: SampleBench,
    lane: Lane,
    turn: int,
    sequence: int,
    provenance: str,
    blobs: dict[str, bytes],
) -> TicketRecord:
    plan = bench.plan
    submission, content = lane.submissions[turn], _content(lane, turn)
    entries = [
        ManifestEntry(
            path=submission.path or f"src/{lane.id}/{bench.text.get('path', 'work.py')}",
            mode="100644",
            deleted=False,
            sha256=digest_bytes(content),
        ),
        ManifestEntry(path=f"src/{lane.id}/old.py", mode=None, deleted=True, sha256=None),
    ]
    manifest = Manifest(
        format="roundkit-manifest/1",
        lane=lane.id,
        entries=tuple(sorted(entries, key=lambda entry: entry.path)),
    )
    blobs[digest_bytes(content)] = content
    key = ticket_key(bench.spec.round_digest, lane.id, manifest.content_digest())
    name = ticket_name(plan.round_id, lane.id, key)
    intake = plan.frozen_utc + timedelta(minutes=3, seconds=40 * sequence)
    cause = submission.reject[0] if submission.reject else None
    later = cause in {"build", "smoke", "import-path"}
    state = "queued" if later or cause is None else "rejected"
    bench.say(intake, "intake", ticket=name, lane=lane.id, state=state, cause=None if later else cause)
    common: dict[str, Any] = {
        "ticket": name, "key": key, "lane": lane.id, "sequence": sequence, "manifest": manifest,
        "manifest_digest": manifest.content_digest(), "intake_utc": intake, "provenance": provenance,
    }  # fmt: skip
    if submission.reject is not None:
        cause, detail = submission.reject
        tail = bench.text.get("tail", detail)
        if later:
            bench.say(intake + timedelta(seconds=1), "build-rejected", ticket=name, cause=cause)
        logs = (CommandLog(step="build", exit_code=1, end_reason="exited", wall_s=0.4, tail=tail),)
        return TicketRecord(
            **common, state="rejected", reject_cause=cause, reject_detail=bench.text.get("detail", detail),
            candidate_commit=None, candidate_tree=None, commands=logs if cause == "build" else (),
            experiments=(), verdict=None, measured_utc=None,
        )  # fmt: skip
    if submission.late:
        return _left_by_the_deadline(bench, name, common)
    commit = invented_commit("candidate", name)
    ran = measure_until_decided(
        bench, "ticket", name, lane.id, plan.incumbent, commit, submission.gain, intake, submission.broke
    )
    record = ran[-1]
    log = CommandLog(step="build", exit_code=0, end_reason="exited", wall_s=0.4, tail="")
    decided = decide(record, bench.spec)
    told = {"verdict": decided.verdict, "reason": decided.reason, "gain": decided.gain}
    bench.say(record.ended_utc, "verdict", ticket=name, **told)
    return TicketRecord(
        **common, state="measured", reject_cause=None, reject_detail=None, candidate_commit=commit,
        candidate_tree=invented_commit("tree", commit), commands=(log,),
        experiments=tuple(item.experiment_id for item in ran),
        verdict=decided, measured_utc=record.ended_utc,
    )  # fmt: skip


def _left_by_the_deadline(bench: SampleBench, name: str, common: dict[str, Any]) -> TicketRecord:
    """Return an accepted ticket that was still queued at the round's deadline."""
    moment, decided = bench.plan.deadline_utc, unmeasured("deadline", bench.spec)
    for devices in bench.free:
        bench.free[devices] = max(bench.free[devices], moment)
    told = {"verdict": decided.verdict, "reason": decided.reason, "gain": decided.gain}
    bench.say(moment, "verdict", ticket=name, **told)
    return TicketRecord(
        **common, state="measured", reject_cause=None, reject_detail=None, candidate_commit=None,
        candidate_tree=None, commands=(), experiments=(), verdict=decided, measured_utc=moment,
    )  # fmt: skip


def submission_of(ticket: TicketRecord, lane: Lane) -> Submission:
    """Return the submission that a ticket came from."""
    digests = {entry.sha256 for entry in ticket.manifest.entries}
    return next(
        submission
        for turn, submission in enumerate(lane.submissions)
        if digest_bytes(_content(lane, turn)) in digests
    )


def _content(lane: Lane, turn: int) -> bytes:
    return f"# {lane.id} {turn}\nFACTOR = {lane.submissions[turn].gain}\n".encode()
