"""One real pilot of which each tuple meets the drift in another way, and what changes its folders."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.pilots import PilotFiles, small

from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.evidence.pilot_layout import trial_folder
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_trial import Eligibility
from roundkit.pilots.cohort import run_cohort
from roundkit.pilots.folder import PilotFolder
from roundkit.pilots.packet import Packet, make_packet
from roundkit.pilots.replay import replay
from roundkit.pilots.review import finish_review, start_review
from roundkit.rules.pilot_eligibility import eligibility

MEETS = """
def read(path="alerts.py"):
    return server.call("read", path=path)

def write(content, expected, path="alerts.py"):
    return server.call("write", path=path, content=content, expected_sha256=expected)

def recovers():
    read()
    again = read()
    write(again["stdout"] + "# mended\\n", again["sha256"])

def is_refused():
    told = read()
    write(told["stdout"], told["sha256"])

def never_reads():
    read("notify.py")

def writes_elsewhere():
    told = read()
    other = read("notify.py")
    write(other["stdout"], other["sha256"], "notify.py")
    read()

def names_neither():
    told = read()
    write(told["stdout"], None)

def is_malformed():
    told = read()
    server.call("write", path="alerts.py", text=told["stdout"])

def names_another_way():
    told = read()
    write(told["stdout"], told["sha256"], "./alerts.py")

{"signature.plain.1": recovers, "signature.plain.2": is_refused, "signature.plain.3": never_reads,
 "signature.plain.4": writes_elsewhere, "signature.guided.1": names_neither,
 "signature.guided.2": is_malformed, "signature.guided.3": names_another_way,
 "signature.guided.4": recovers}[label]()
"""
RECOVERED = "signature.plain.1"
REFUSED = "signature.plain.2"
REVIEWER = "r-1"


def drift_pilot(folder: Path) -> Path:
    """Run a pilot of one task with a drift, two variants and four repetitions; replay it."""
    files: PilotFiles = small(folder, MEETS, task="signature")
    files.edit(lambda content: content.update(repetitions=4))
    pilot, plan = files.freeze()
    run_cohort(pilot, plan)
    replay(PilotFolder(pilot.root), plan)
    return pilot.root


def reviewed(pilot: Path, tuple_id: str) -> Packet:
    """Review a tuple's candidate from start to finish."""
    packet = make_packet(pilot, tuple_id)
    start_review(packet, REVIEWER)
    finish_review(packet, reviewer=REVIEWER, blinded=True, judgement="accept")
    return packet


def eligibility_of(pilot: Path, tuple_id: str) -> Eligibility:
    """Return a tuple's eligibility, as it follows from the bytes that lie there now."""
    reader = PilotReader(pilot)
    plan = reader.plan()
    slot = next(slot for slot in plan.schedule if slot.tuple_id == tuple_id)
    return eligibility(plan, slot, reader.trial_files(trial_folder(slot.order, tuple_id), slot))


def trial_of(pilot: Path, tuple_id: str) -> Path:
    """Return a tuple's folder."""
    (found,) = (pilot / "trials").glob(f"*-{tuple_id}")
    return found


def edit_json(path: Path, /, **changes: Any) -> None:
    """Change fields of a canonical JSON file, canonically."""
    value = {**json.loads(path.read_bytes()), **changes}
    path.write_bytes(canonical_bytes(value))


def edit_line(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change one line of a file of canonical JSON lines, canonically; lines count from 1."""
    lines = path.read_bytes().splitlines()
    value = json.loads(lines[number - 1])
    change(value)
    lines[number - 1] = canonical_bytes(value)
    path.write_bytes(b"\n".join(lines) + b"\n")


def edit_message(path: Path, number: int, change: Callable[[Any], object]) -> None:
    """Change one message of a wire, with its length."""

    def changed(line: dict[str, Any]) -> None:
        value = json.loads(base64.b64decode(line["base64"]))
        change(value)
        data = json.dumps(value, separators=(",", ":")).encode()
        line.update(base64=base64.b64encode(data).decode(), bytes=len(data))

    edit_line(path, number, changed)


def rebind(trial: Path) -> None:
    """Write a record that binds the files as they are now, and chain it: what a forger would do."""
    rebind_alone(trial)
    rechain(trial.parent.parent)


def rebind_alone(trial: Path) -> None:
    """Write a record that binds the files as they are now."""
    presentation, wire = trial / "presentation.json", trial / "wire.jsonl"
    if wire.is_file() and digest_bytes(wire.read_bytes())[:32].encode() not in presentation.read_bytes():
        edit_json(presentation, wire_sha256=digest_bytes(wire.read_bytes()))
    record = json.loads((trial / "record.json").read_bytes())
    for entry in record["files"]:
        path = trial / entry["path"]
        if path.is_file():
            data = path.read_bytes()
            entry.update(size=len(data), sha256=digest_bytes(data))
    (trial / "record.json").write_bytes(canonical_bytes(record))


def rechain(pilot: Path) -> None:
    """Let every start name the record before it as it is now; such a forger posts another head, or none."""
    starts = [*pilot.glob("trials/*/start.json"), *pilot.glob("setup/*/start.json")]
    previous = None
    for start in sorted(starts, key=lambda path: json.loads(path.read_bytes())["started_clock"]["from_us"]):
        edit_json(start, previous_sha256=previous)
        data, record = start.read_bytes(), json.loads((start.parent / "record.json").read_bytes())
        for entry in record["files"]:
            if entry["path"] == "start.json":
                entry.update(size=len(data), sha256=digest_bytes(data))
        (start.parent / "record.json").write_bytes(canonical_bytes(record))
        previous = digest_bytes((start.parent / "record.json").read_bytes())
