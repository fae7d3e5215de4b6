"""The index of an evidence folder: every file with its size and digest, and the link to the one before."""

from __future__ import annotations

from typing import Literal

from roundkit.models.base import Count, Digest, Identifier, Record, UtcTime


class IndexedFile(Record):
    """One file of the folder."""

    path: str
    size: Count
    sha256: Digest


class EvidenceIndex(Record):
    """``index.json``. Its own SHA-256 is the evidence's digest.

    Attributes:
        kind: What the folder records.
        previous: Digest of the previous round's index, null for a campaign's first.
        tool_version: The version of roundkit that exported it.
    """

    format: Literal["roundkit-evidence/1"]
    kind: Literal["round"]
    campaign_id: Identifier
    subject_id: Identifier
    exported_utc: UtcTime
    tool_version: str
    previous: Digest | None
    files: tuple[IndexedFile, ...]


class SecretReveal(Record):
    """The coordinator's secret, revealed: its SHA-256 stands in the frozen plan."""

    format: Literal["roundkit-secret/1"]
    secret_hex: Digest


class EvidencePointer(Record):
    """What a pruned round directory says about the rest of its round.

    Attributes:
        evidence: Absolute path of the evidence folder, as it was when the directory was pruned.
        index_sha256: Digest of the evidence, for ``roundkit audit --expect``.
    """

    format: Literal["roundkit-evidence-pointer/1"]
    campaign_id: Identifier
    round_id: Identifier
    round_digest: Digest
    evidence: str
    index_sha256: Digest
    pruned_utc: UtcTime
