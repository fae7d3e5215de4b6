"""Tickets: digests and names, scope, the bytes of every submitted file, deadlines and caps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.core.text import counted
from roundkit.models.ledger import BEYOND_THE_CAP, RejectCause, TicketRecord
from roundkit.rules.admission import admission_problem
from roundkit.rules.identity import ticket_key, ticket_name

_SYMLINK = "120000"
_IN_THE_MANIFEST: frozenset[RejectCause] = frozenset({"scope", "protected-path"})
"""Causes that the manifest shows by itself."""


def check_tickets(material: Material) -> list[Check]:
    """Check every ticket's identity, scope, files, deadline and the caps of its lane."""
    tickets = material.ledger.tickets
    accepted = [ticket for ticket in tickets if ticket.state != "rejected"]
    return [
        *conclude(
            "ticket names",
            _identity_problems(material),
            f"{counted(len(tickets), 'ticket')}, each with its manifest",
        ),
        *conclude("ticket states", _state_problems(material), "every accepted ticket has one verdict"),
        *conclude(
            "commands", _command_problems(material), "build, probe and smoke as planned, each ended well"
        ),
        *conclude("scope", _scope_problems(material, accepted), counted(len(accepted), "accepted candidate")),
        *conclude(
            "blobs",
            _blob_problems(material),
            counted(len(material.evidence.blob_digests), "submitted file"),
        ),
        *conclude(
            "deadlines", _deadline_problems(material), "no ticket was accepted after its lane's deadline"
        ),
        *conclude("caps", _cap_problems(material), "no lane has more submissions than its cap"),
    ]


def _identity_problems(material: Material) -> Iterator[Disagreement]:
    digest, lanes = material.plan.digest(), {lane.id for lane in material.plan.lanes}
    for ticket in material.ledger.tickets:
        if ticket.lane not in lanes or ticket.manifest.lane != ticket.lane:
            yield Disagreement(ticket.ticket, "its lane is not the manifest's, or not in the plan")
            continue
        content = ticket.manifest.content_digest()
        key = ticket_key(digest, ticket.lane, content)
        name = ticket_name(material.plan.round_id, ticket.lane, key)
        for what, stands, computed in (
            ("manifest_digest", ticket.manifest_digest, content),
            ("key", ticket.key, key),
            ("name", ticket.ticket, name),
        ):
            if stands != computed:
                yield differs(ticket.ticket, what, stands, computed)
    for what in ("ticket", "key", "sequence"):
        counted = Counter(getattr(ticket, what) for ticket in material.ledger.tickets)
        for value, times in counted.items():
            if times > 1:
                yield Disagreement(str(value), f"{times} tickets have this {what}")
    for record in material.ledger.lanes:
        own = tuple(ticket.ticket for ticket in material.ledger.tickets if ticket.lane == record.lane)
        if sorted(record.tickets) != sorted(own):
            yield differs(f"lane {record.lane}", "tickets", record.tickets, own)


def _state_problems(material: Material) -> Iterator[Disagreement]:
    for ticket in material.ledger.tickets:
        rejected = ticket.state == "rejected"
        if rejected != (ticket.reject_cause is not None):
            yield Disagreement(ticket.ticket, "rejected without a cause, or a cause without rejection")
        if (ticket.state == "measured") != (ticket.verdict is not None):
            yield Disagreement(ticket.ticket, f"state {ticket.state} does not go with its verdict")
        if ticket.state not in {"measured", "rejected"}:
            yield Disagreement(ticket.ticket, f"was left {ticket.state} when the round closed")
        # One that was interrupted may be rejected when it is built anew; one that was measured may not.
        if rejected and any(one.outcome == "complete" for one in material.of_subject(ticket.ticket)):
            yield Disagreement(ticket.ticket, "was rejected and measured")
    yield from _rejection_problems(material)


def _command_problems(material: Material) -> Iterator[Disagreement]:
    """Yield tickets whose commands are not the planned ones, or did not end as the ticket's state says."""
    campaign = material.plan.campaign
    planned = [
        step
        for step, wanted in (
            ("build", campaign.build),
            ("import-path", campaign.target_package),
            ("smoke", campaign.smoke),
        )
        if wanted is not None
    ]
    for ticket in material.ledger.tickets:
        ran = [log.step for log in ticket.commands]
        failed = [log.step for log in ticket.commands if not log.succeeded]
        if ticket.state != "rejected":
            measured = bool(material.of_subject(ticket.ticket))
            if failed or (ran != planned and (measured or ran)):
                yield differs(ticket.ticket, "commands", ran, planned)
        elif ticket.reject_cause in planned:
            if failed != [ticket.reject_cause] or ran[-1:] != failed:
                yield differs(ticket.ticket, "the command that failed", failed, ticket.reject_cause)
        elif failed:
            yield differs(ticket.ticket, "the command that failed", failed, "none")


def _scope_problems(material: Material, accepted: list[TicketRecord]) -> Iterator[Disagreement]:
    present = material.evidence.blob_digests
    for ticket in accepted:
        links = {
            entry.path: material.evidence.blob(entry.sha256).decode("utf-8", "surrogateescape")
            for entry in ticket.manifest.entries
            if entry.mode == _SYMLINK and entry.sha256 in present and entry.sha256 is not None
        }
        rejection = admission_problem(ticket.manifest, material.plan, link_targets=links)
        if rejection is not None:
            yield Disagreement(ticket.ticket, f"accepted, though {rejection.cause}: {rejection.detail}")


def _blob_problems(material: Material) -> Iterator[Disagreement]:
    present, named = material.evidence.blob_digests, set()
    sizes = {file.sha256: file.size for file in material.evidence.index.files}
    limits = material.plan.campaign.intake
    for ticket in material.ledger.tickets:
        digests = [entry.sha256 for entry in ticket.manifest.entries if entry.sha256 is not None]
        named.update(digests)
        if ticket.state == "rejected":
            continue
        for digest in digests:
            if digest not in present:
                yield Disagreement(ticket.ticket, f"the bytes of {digest} are not in the evidence")
        kept = [sizes[digest] for digest in digests if digest in present]
        if any(size > limits.max_file_bytes for size in kept) or sum(kept) > limits.max_total_bytes:
            yield Disagreement(ticket.ticket, "accepted, though larger than the plan's intake limits")
    for digest in sorted(present - named):
        yield Disagreement(f"blobs/{digest}", "no manifest names this file")


def _deadline_problems(material: Material) -> Iterator[Disagreement]:
    deadlines = {lane.id: lane.deadline_utc for lane in material.plan.lanes}
    ledger = material.ledger
    for ticket in ledger.tickets:
        late = ticket.lane in deadlines and ticket.intake_utc >= deadlines[ticket.lane]
        if late and ticket.state != "rejected":
            yield differs(ticket.ticket, "intake", ticket.intake_utc, f"after {deadlines[ticket.lane]}")
        if not material.plan.frozen_utc <= ticket.intake_utc <= ledger.closed_utc:
            yield Disagreement(
                ticket.ticket, "was taken in before the plan was frozen or after the round closed"
            )


def _rejection_problems(material: Material) -> Iterator[Disagreement]:
    """Yield rejections at intake that do not follow: what only bytes and the incumbent show is believed."""
    lanes = {lane.id: lane for lane in material.plan.lanes}
    stopped = {event.fields.get("lane") for event in material.evidence.events if event.kind == "lane-stopped"}
    counted: Counter[str] = Counter()
    for ticket in sorted(material.ledger.tickets, key=lambda one: one.sequence):
        lane, cause = lanes.get(ticket.lane), ticket.reject_cause
        if lane is None:
            continue  # its identity's own check says so
        if cause == "late" and ticket.intake_utc < lane.deadline_utc and lane.id not in stopped:
            yield Disagreement(ticket.ticket, "rejected as late, before its lane's deadline")
        if cause == "cap" and counted[lane.id] < lane.submission_cap:
            yield Disagreement(ticket.ticket, f"rejected as over a cap that {counted[lane.id]} had used")
        if cause in BEYOND_THE_CAP:
            continue
        counted[lane.id] += 1
        found = None if cause is None else admission_problem(ticket.manifest, material.plan)
        shown = found.cause if found is not None else "none" if cause in _IN_THE_MANIFEST else cause
        if shown != cause:
            yield differs(ticket.ticket, "cause of its rejection", cause, shown)


def _cap_problems(material: Material) -> Iterator[Disagreement]:
    counted = Counter(
        ticket.lane for ticket in material.ledger.tickets if ticket.reject_cause not in BEYOND_THE_CAP
    )
    for lane in material.plan.lanes:
        if counted[lane.id] > lane.submission_cap:
            yield differs(
                f"lane {lane.id}", "submissions", counted[lane.id], f"at most {lane.submission_cap}"
            )
