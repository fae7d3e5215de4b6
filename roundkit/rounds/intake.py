"""Intake: from an outbox entry that nobody trusts to a ticket on record, queued or rejected."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from roundkit.core.canonical import digest_bytes, parse_json
from roundkit.core.clock import is_expired, now_utc
from roundkit.core.errors import Refused
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository
from roundkit.host.confine import HostileOutput, read_output
from roundkit.models.lane import Manifest, ManifestEntry
from roundkit.models.ledger import RejectedSubmission, TicketRecord
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds.building import pristine_checkout
from roundkit.rounds.lane_doors import OUTBOX, printable_name
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.waiting_submissions import FLOOD, Outboxes
from roundkit.rules.admission import Rejection, admission_problem
from roundkit.rules.authority import filled_by
from roundkit.rules.identity import ticket_key, ticket_name
from roundkit.store import RoundStore

_MANIFEST_BYTES_PER_FILE = 4096
_MANIFEST_BYTES_SPARE = 65536
_SYMLINK = "120000"
_SUBMODULE = "160000"
_DETAIL_CHARACTERS = 500
_FLOOD = Rejection(
    "too-large", "so many entries are no submissions, late or over the cap that further ones are not recorded"
)


@dataclass(frozen=True)
class Intake:
    """What intake needs to know of a round.

    Attributes:
        submodules: Paths of submodules in the incumbent.
        links: Target of each of its symbolic links, by path.
    """

    folder: RoundFolder
    plan: RoundPlan
    round_digest: str
    submodules: Collection[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)


def open_intake(folder: RoundFolder, plan: RoundPlan, round_digest: str) -> Intake:
    """Return what intake needs to know of a round; its incumbent is laid out where it is not yet."""
    entries, pristine = Repository(folder.repository).tree(plan.incumbent), pristine_checkout(folder, plan)
    return Intake(
        folder,
        plan,
        round_digest,
        submodules=frozenset(entry.path for entry in entries if entry.mode == _SUBMODULE),
        links={
            entry.path: os.readlink(pristine / entry.path)  # noqa: PTH115 - a Path would make `a/./b` into `a/b`
            for entry in entries
            if entry.mode == _SYMLINK
        },
    )


def take_in(intake: Intake, store: RoundStore, outboxes: Outboxes | None = None) -> list[TicketRecord]:
    """Take in what is new in every lane's outbox; each entry is decided once and for good.

    Args:
        intake: The round.
        store: Its store.
        outboxes: The outboxes as the caller has read them so far; read from the start when not given.

    Returns:
        The tickets that came of it. A large outbox takes several calls.
    """
    outboxes = outboxes or Outboxes(intake.folder, intake.plan, store)
    stopped = store.control.stopped_lanes()
    taken, found = [], False
    for lane in intake.plan.lanes:
        outbox = outboxes.lanes[lane.id]
        for entry in outbox.next_entries():
            found = True
            try:
                record = _take_entry(
                    intake, store, lane, entry, stopped=lane.id in stopped, flooded=outbox.flooded
                )
            except FileNotFoundError:
                if intake.folder.clone(lane.id).is_dir():
                    raise
                continue  # the whole clone is gone: what comes back with it is found anew
            if record is None:
                outbox.decided_beyond(entry)
            else:
                outbox.decided_ticket(record)
                taken.append(record)
    outboxes.note_progress(found=found)
    return taken


def _take_entry(
    intake: Intake, store: RoundStore, lane: FrozenLane, entry: str, *, stopped: bool, flooded: bool
) -> TicketRecord | None:
    now = now_utc()
    manifest = _read_manifest(intake, lane, entry)
    if isinstance(manifest, Manifest):
        key = ticket_key(intake.round_digest, lane.id, manifest.content_digest())
        if key != entry:
            manifest = Rejection("hash-mismatch", f"the entry is named {entry[:80]!r}, its content is {key}")
        elif store.tickets.find(ticket_name(intake.plan.round_id, lane.id, key)) is not None:
            manifest = Rejection("ticket-collision", "another candidate's ticket has the same name")
    if isinstance(manifest, Rejection):
        _reject_entry(store, lane.id, FLOOD if flooded else entry, _FLOOD if flooded else manifest, now)
        return None
    beyond = _limits_problem(store, lane, now, stopped=stopped)
    if beyond and flooded:
        _reject_entry(store, lane.id, FLOOD, _FLOOD, now)
        return None
    rejection = beyond or _content_problem(intake, lane, entry, manifest)
    with store.transaction():
        record = store.tickets.add(
            key=entry,
            ticket=ticket_name(intake.plan.round_id, lane.id, entry),
            manifest=manifest,
            intake_utc=now,
            provenance=filled_by(lane, store.attempts.all(lane.id)),
            reject_cause=rejection.cause if rejection else None,
            reject_detail=_bounded(rejection.detail) if rejection else None,
        )
        store.events.add(
            "intake", ticket=record.ticket, lane=lane.id, state=record.state, cause=record.reject_cause
        )
    return record


def _reject_entry(store: RoundStore, lane: str, entry: str, rejection: Rejection, now: datetime) -> None:
    rejected = RejectedSubmission(
        lane=lane,
        entry=printable_name(entry),
        cause=rejection.cause,
        detail=_bounded(rejection.detail),
        intake_utc=now,
    )
    with store.transaction():
        if store.tickets.add_rejected_submission(rejected):
            store.events.add("submission-rejected", lane=lane, entry=rejected.entry, cause=rejected.cause)


def _bounded(detail: str) -> str:
    """Keep what a lane wrote from filling the ledger."""
    return detail if len(detail) <= _DETAIL_CHARACTERS else f"{detail[:_DETAIL_CHARACTERS]}…"


def _read_manifest(intake: Intake, lane: FrozenLane, entry: str) -> Manifest | Rejection:
    most = _MANIFEST_BYTES_SPARE + _MANIFEST_BYTES_PER_FILE * intake.plan.campaign.intake.max_files
    try:
        data = read_output(intake.folder.clone(lane.id), f"{OUTBOX}/{entry}/manifest.json", most)
        raw = parse_json(data, place="manifest.json")
        early = _bulk_problem(raw, intake.plan.campaign.intake.max_files) or _mode_problem(raw)
        if early is not None:
            return early
        manifest = Manifest.model_validate_json(data, strict=True)
    except HostileOutput as error:
        return _hostile(error, "manifest.json")
    except Refused as error:
        return Rejection("malformed", error.refusals[0].message)
    except ValidationError as error:
        first = error.errors()[0]
        return Rejection("malformed", f"manifest.json: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    if manifest.lane != lane.id:
        return Rejection("malformed", f"the manifest names lane {manifest.lane!r}")
    return manifest


def _bulk_problem(raw: Any, max_files: int) -> Rejection | None:
    """Say what a manifest has too much of; telling every error of millions would take gigabytes."""
    entries = raw.get("entries") if isinstance(raw, dict) else None
    entries = entries if isinstance(entries, list) else []
    if len(entries) > max_files:
        return Rejection("too-large", f"{len(entries)} files, more than {max_files}")
    fields = len(ManifestEntry.model_fields)
    for row, most in ((raw, len(Manifest.model_fields)), *((entry, fields) for entry in entries)):
        if isinstance(row, dict) and len(row) > most:
            return Rejection("malformed", "manifest.json: an object has more fields than there are")
    return None


def _mode_problem(raw: Any) -> Rejection | None:
    entries = raw.get("entries") if isinstance(raw, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        mode = entry.get("mode") if isinstance(entry, dict) else None
        if mode == "160000":
            return Rejection("submodule", f"{entry.get('path')!r} is a submodule")
        if isinstance(mode, str) and mode not in {"100644", "100755", _SYMLINK}:
            return Rejection("mode", f"{entry.get('path')!r} has mode {mode!r}")
    return None


def _limits_problem(store: RoundStore, lane: FrozenLane, now: datetime, *, stopped: bool) -> Rejection | None:
    if stopped or is_expired(lane.deadline_utc, now):
        return Rejection("late", "the lane was stopped" if stopped else "the lane's deadline has passed")
    if store.tickets.count_toward_cap(lane.id) >= lane.submission_cap:
        return Rejection("cap", f"the lane's {lane.submission_cap} submissions are used up")
    return None


def _content_problem(intake: Intake, lane: FrozenLane, entry: str, manifest: Manifest) -> Rejection | None:
    first = admission_problem(manifest, intake.plan, submodules=intake.submodules)
    if first is not None:
        return first
    copied = _copy_blobs(intake, lane, entry, manifest)
    if isinstance(copied, Rejection):
        return copied
    return admission_problem(
        manifest,
        intake.plan,
        link_targets=copied,
        submodules=intake.submodules,
        standing_links=intake.links,
    )


def _copy_blobs(
    intake: Intake, lane: FrozenLane, entry: str, manifest: Manifest
) -> dict[str, str] | Rejection:
    limits = intake.plan.campaign.intake
    left = limits.max_total_bytes
    targets: dict[str, str] = {}
    for item in manifest.entries:
        if item.sha256 is None:
            continue
        try:
            # Hashed and kept are the same bytes in memory: nothing can be swapped between check and copy.
            data = read_output(
                intake.folder.clone(lane.id),
                f"{OUTBOX}/{entry}/blobs/{item.sha256}",
                min(left, limits.max_file_bytes),
            )
        except HostileOutput as error:
            return _hostile(error, repr(item.path))
        if digest_bytes(data) != item.sha256:
            return Rejection(
                "hash-mismatch", f"the bytes of {item.path!r} do not have the digest in the manifest"
            )
        left -= len(data)
        if item.mode == _SYMLINK:
            targets[item.path] = data.decode("utf-8", "surrogateescape")
        keep_blob(intake.folder.blobs, item.sha256, data)
    return targets


def _hostile(error: HostileOutput, what: str) -> Rejection:
    too_large = error.reason in {"too-large", "changing"}
    return Rejection("too-large" if too_large else "malformed", f"{what}: {error}")


def keep_blob(blobs: Path, sha256: str, data: bytes) -> None:
    """Keep bytes under their digest; the same bytes are kept once."""
    blobs.mkdir(parents=True, exist_ok=True)
    if not (blobs / sha256).exists():
        atomic_write(blobs / sha256, data, mode=0o600)
