"""What a blinded reviewer gets: diff, rubric and fingerprints, under a code that tells nothing."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.core.errors import Refused, refuse
from roundkit.core.files import atomic_write, whole_folder
from roundkit.core.lines import create_exclusively
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import pilot_layout
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.evidence.problem import EvidenceProblem
from roundkit.models.pilot_evidence import TrialFiles
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_review import PacketFile, ReviewPacket
from roundkit.rules.pilot_labels import labels_of, leak_refusals, leaks
from roundkit.rules.pilot_reading import Bound, Ineligible, bind, raw
from roundkit.rules.pilot_review_checks import check_packet

DIFF, RUBRIC, FINGERPRINTS = "candidate.diff", "rubric.md", "fingerprints.json"
_CODE_BYTES = 4


@dataclass(frozen=True)
class Packet:
    """A packet where it lies. Only ``code`` and ``record`` may be shown to a reviewer.

    Attributes:
        pilot: The pilot's folder.
        slot: The tuple that it is about.
        record: The packet.
        sha256: Digest of ``packet.json``.
    """

    pilot: Path
    slot: Slot
    record: ReviewPacket
    sha256: str

    @property
    def code(self) -> str:
        """What a reviewer calls it."""
        return self.record.code

    @property
    def review(self) -> str:
        """Its review's folder, relative to the pilot's."""
        return f"{_folder(self.slot)}/{pilot_layout.REVIEW}"

    def read(self, name: str) -> bytes:
        """Return one of its files.

        Raises:
            EvidenceProblem: it is missing or a link.
        """
        return PilotReader(self.pilot).read(f"{self.review}/{pilot_layout.PACKET_FILES}/{name}")


def make_packet(pilot: Path, tuple_id: str) -> Packet:
    """Write the packet of a trial that has ended, or return the one that there is.

    Args:
        pilot: The pilot's folder.
        tuple_id: The tuple.

    Raises:
        Refused: ``no-tuple``, ``not-ended``, ``no-candidate``; ``label-leak``, with every place;
            ``stale-packet`` where there is one about another candidate; ``partial-packet`` where writing one
            was interrupted.
    """
    folder = PilotReader(pilot)
    plan = folder.plan()
    slot = slot_of(plan, tuple_id)
    review = f"{_folder(slot)}/{pilot_layout.REVIEW}"
    if (pilot / review).exists() or (pilot / review).is_symlink():
        return _opened(folder, plan, slot)
    files, record = _contents(folder, slot, code=_free_code(folder, plan))
    shown = {**files, pilot_layout.PACKET: record.to_bytes()}
    if found := list(leaks(shown, labels_of(plan))):
        raise Refused(leak_refusals(found))
    inside = pilot / review / pilot_layout.PACKET_FILES
    inside.mkdir(parents=True)
    try:
        for name, data in files.items():
            create_exclusively(inside / name, data)
        create_exclusively(pilot / review / pilot_layout.PACKET, record.to_bytes())
    except OSError:
        # Nobody has seen it yet; half of one would leave the observation ineligible for good.
        shutil.rmtree(pilot / review, ignore_errors=True)
        raise
    return Packet(pilot, slot, record, record.digest())


def find_packet(pilot: Path, code: str) -> Packet:
    """Return the packet of a code, as it was written, after checking that it is not stale.

    Raises:
        Refused: ``no-packet``; ``stale-packet``.
    """
    folder = PilotReader(pilot)
    plan = folder.plan()
    for slot in plan.schedule:
        try:
            found = folder.record(
                f"{_folder(slot)}/{pilot_layout.REVIEW}/{pilot_layout.PACKET}", ReviewPacket
            )
        except EvidenceProblem:
            continue
        if found.code == code:
            return _opened(folder, plan, slot)
    raise refuse(
        "no-packet",
        f"no packet is called {code!r}",
        place="packet",
        remedy="`roundkit pilot review packet PILOT_DIR` lists the packets",
    )


def all_packets(pilot: Path) -> list[Packet]:
    """Return every packet that there is, by code, so that their order tells nothing either."""
    folder = PilotReader(pilot)
    return sorted(_there(folder, folder.plan()), key=lambda packet: packet.code)


def make_all(pilot: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write the packet of every trial that has none and could have one, in an order drawn by chance.

    Args:
        pilot: The pilot's folder.
        progress: Shows how many trials were looked at.

    Returns:
        Why each trial that has no packet has none, without its name.

    Raises:
        EvidenceProblem: there is no plan that can be read.
    """
    slots = list(PilotReader(pilot).plan().schedule)
    secrets.SystemRandom().shuffle(slots)
    problems = []
    with progress.task("review packets", len(slots), "trials") as task:
        for slot in slots:
            try:
                make_packet(pilot, slot.tuple_id)
            except Refused as refused:
                problems += [f"[{each.code}] {each.place}" for each in refused.refusals]
            task.advance()
    return sorted(problems)


def copy_packet(packet: Packet, out: Path) -> list[Path]:
    """Copy a packet's files into a new folder, whose path a reviewer may see.

    Raises:
        Refused: ``exists``.
    """
    if out.exists():
        raise refuse("exists", f"{out} exists", place=str(out), remedy="name a folder that does not")
    with whole_folder(out) as partial:
        for entry in packet.record.files:
            atomic_write(partial / entry.name, packet.read(entry.name))
    return [out / entry.name for entry in packet.record.files]


def slot_of(plan: PairedPlan, tuple_id: str) -> Slot:
    """Return a tuple's slot.

    Raises:
        Refused: ``no-tuple``.
    """
    slot = next((slot for slot in plan.schedule if slot.tuple_id == tuple_id), None)
    if slot is None:
        raise refuse(
            "no-tuple",
            f"the plan has no tuple {tuple_id!r}",
            place=pilot_layout.PLAN,
            remedy=f"one of {', '.join(sorted(each.tuple_id for each in plan.schedule))}",
        )
    return slot


def _folder(slot: Slot) -> str:
    return pilot_layout.trial_folder(slot.order, slot.tuple_id)


def _there(folder: PilotReader, plan: PairedPlan) -> Iterator[Packet]:
    for slot in plan.schedule:
        try:
            name = f"{_folder(slot)}/{pilot_layout.REVIEW}/{pilot_layout.PACKET}"
            record = folder.record(name, ReviewPacket)
        except EvidenceProblem:
            continue
        yield Packet(folder.root, slot, record, record.digest())


def _free_code(folder: PilotReader, plan: PairedPlan) -> str:
    taken = {packet.code for packet in _there(folder, plan)}
    while (code := f"packet-{secrets.token_hex(_CODE_BYTES)}") in taken:
        pass
    return code


def _bound(folder: PilotReader, slot: Slot) -> Bound:
    files: TrialFiles = folder.trial_files(_folder(slot), slot)
    try:
        return bind(files)
    except Ineligible as reason:
        raise refuse(
            "not-ended",
            f"the trial has no record to review: {reason}",
            place="packet",
            remedy="wait until it has ended; `roundkit pilot run` records one that was cut short",
        ) from reason


def _opened(folder: PilotReader, plan: PairedPlan, slot: Slot) -> Packet:
    trial = _bound(folder, slot)
    name = f"{_folder(slot)}/{pilot_layout.REVIEW}/{pilot_layout.PACKET}"
    try:
        record = folder.record(name, ReviewPacket)
    except EvidenceProblem as found:
        raise refuse(
            "partial-packet",
            f"a packet was begun and is not whole: {found.refusals[0].code}",
            place="packet",
            remedy="leave it as it is: this observation stays ineligible",
        ) from found
    try:
        check_packet(trial, plan.task(slot.task), record)
    except Ineligible as reason:
        raise refuse(
            "stale-packet",
            f"{record.code}: {reason.detail}",
            place="packet",
            remedy="leave it as it is: this observation stays ineligible",
        ) from reason
    return Packet(folder.root, slot, record, record.digest())


def _contents(folder: PilotReader, slot: Slot, *, code: str) -> tuple[dict[str, bytes], ReviewPacket]:
    trial = _bound(folder, slot)
    candidate = trial.files.candidate_sha256
    if candidate is None or trial.entry(pilot_layout.DIFF) is None:
        raise refuse(
            "no-candidate",
            "the trial left no candidate that could be reviewed",
            place="packet",
            remedy="its observation stays ineligible, with that reason",
        )
    try:
        diff = trial.data(pilot_layout.DIFF)
    except Ineligible as reason:
        raise refuse("no-candidate", reason.detail, place="packet") from reason
    rubric = folder.read(pilot_layout.task_input(slot.task, "rubric"))
    # The record binds every other file. Digests of those, or sizes, would tell whose prompts were the same.
    bound = {"candidate": candidate, "record": digest_bytes(raw(trial.files, pilot_layout.RECORD))}
    prints = [{"of": what, "sha256": sha256} for what, sha256 in bound.items()]
    files = {DIFF: diff, RUBRIC: rubric, FINGERPRINTS: canonical_bytes(prints)}
    record = ReviewPacket(
        format="roundkit-review-packet/1",
        code=code,
        candidate_sha256=candidate,
        diff_sha256=digest_bytes(diff),
        rubric_sha256=digest_bytes(rubric),
        files=tuple(
            PacketFile(name=name, sha256=digest_bytes(data), size=len(data)) for name, data in files.items()
        ),
    )
    return files, record
