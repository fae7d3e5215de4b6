"""The index of an evidence folder: every file with its size and digest, and the link to the one before."""

from __future__ import annotations

from typing import Literal

from roundkit.models.base import Count, Digest, Identifier, Record, UtcTime


class IndexedFile(Record):
    """One file of the folder.

    Attributes:
        path: Its place in the folder.
    """

    path: str
    size: Count
    sha256: Digest


class EvidenceIndex(Record):
    """``index.json``. Its own SHA-256 is the evidence's digest.

    Attributes:
        kind: What the folder records.
        subject_id: The round.
        tool_version: The version of roundkit that exported it.
        previous: Digest of the previous round's index, null for a campaign's first.
        files: Every file but the index and its seal.
    """

    format: Literal["roundkit-evidence/1"]
    kind: Literal["round"]
    campaign_id: Identifier
    subject_id: Identifier
    exported_utc: UtcTime
    tool_version: str
    previous: Digest | None
    files: tuple[IndexedFile, ...]


class WaveIndex(Record):
    """``waves-index.json`` of an exported wave campaign. Its own SHA-256 is the evidence's digest.

    Attributes:
        tool_version: The version of roundkit that exported it.
        files: Every file but the index and its seal.
    """

    format: Literal["roundkit-waves-evidence/1"]
    campaign_id: Identifier
    exported_utc: UtcTime
    tool_version: str
    files: tuple[IndexedFile, ...]


class SecretReveal(Record):
    """The coordinator's secret, revealed: its SHA-256 stands in the frozen plan.

    Attributes:
        secret_hex: The secret, in hexadecimal.
    """

    format: Literal["roundkit-secret/1"]
    secret_hex: Digest


class EvidencePointer(Record):
    """What a pruned round directory says about the rest of its round.

    Attributes:
        evidence: Absolute path of the evidence folder, as it was when the directory was pruned.
        index_sha256: Digest of the evidence, for ``roundkit audit --expect``.
        pruned_utc: When it was pruned.
    """

    format: Literal["roundkit-evidence-pointer/1"]
    campaign_id: Identifier
    round_id: Identifier
    round_digest: Digest
    evidence: str
    index_sha256: Digest
    pruned_utc: UtcTime
