"""The checks of a paired pilot's packets: each shows what it has to, of its own trial, under its own code."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Disagreement, differs
from roundkit.audit.pilot_material import PilotMaterial, read_or_none
from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.evidence import pilot_layout as layout
from roundkit.models.pilot_review import ReviewPacket

_SHOWN = ("candidate.diff", "rubric.md", "fingerprints.json")


def packet_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield packets that show other files, or fingerprints of another trial, or share their code."""
    codes: dict[str, str] = {}
    for row in material.cohort.observations:
        name = f"{row.folder}/{layout.REVIEW}/{layout.PACKET}"
        packet = read_or_none(material.reader, name, ReviewPacket)
        if packet is None or row.record is None:
            continue  # eligibility says what is wrong with one that is there
        if (first := codes.setdefault(packet.code, name)) != name:
            yield Disagreement(name, f"has the code {packet.code} of {first}")
        shown = tuple(file.name for file in packet.files)
        if shown != _SHOWN:
            yield differs(name, "files", ", ".join(shown), ", ".join(_SHOWN))
        bound = {"candidate": packet.candidate_sha256, "record": row.record.digest()}
        prints = canonical_bytes([{"of": what, "sha256": sha256} for what, sha256 in bound.items()])
        for file in packet.files:
            if file.name == _SHOWN[-1] and file.sha256 != digest_bytes(prints):
                yield differs(name, f"SHA-256 of {file.name}", file.sha256, digest_bytes(prints))
