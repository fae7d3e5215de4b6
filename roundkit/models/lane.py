"""What crosses between a lane and the coordinator: launch manifest, lane file, submission, ticket state."""

from __future__ import annotations

from typing import Any, Literal

from roundkit.core.canonical import digest_json
from roundkit.models.base import CommitId, Count, Digest, Identifier, Record, UtcTime
from roundkit.models.round_plan import HarnessName, LaneBudget

TicketState = Literal["queued", "measuring", "measured", "rejected"]


class ManifestEntry(Record):
    """One changed path of a candidate.

    Attributes:
        path: Relative POSIX path.
        mode: ``100644``, ``100755`` or ``120000`` (a symlink, whose target is the content); null if deleted.
        deleted: True when the candidate removes the path.
        sha256: Digest of the content; null if deleted.
    """

    path: str
    mode: Literal["100644", "100755", "120000"] | None
    deleted: bool
    sha256: Digest | None


class Manifest(Record):
    """A candidate's paths, modes, deletions and digests; its own digest identifies the candidate.

    Attributes:
        entries: One a changed path.
    """

    format: Literal["roundkit-manifest/1"]
    lane: Identifier
    entries: tuple[ManifestEntry, ...]

    def content_digest(self) -> str:
        """Return the digest over path, mode, deletion and hash only, sorted by path."""
        rows: list[dict[str, Any]] = [entry.to_json_value() for entry in self.entries]
        return digest_json(sorted(rows, key=lambda row: row["path"].encode("utf-8", "surrogatepass")))


class LaneFile(Record):
    """``.roundkit/lane.json``: what the wrapper needs. The coordinator never reads it back.

    Attributes:
        base_commit: I0.
        globs_regex: The globs as one regular expression.
    """

    format: Literal["roundkit-lane/1"]
    round_id: Identifier
    round_digest: Digest
    lane: Identifier
    base_commit: CommitId
    globs: tuple[str, ...]
    globs_regex: str
    protected_paths: tuple[str, ...]
    submission_cap: int
    deadline_utc: UtcTime


class LaunchLane(Record):
    """One lane in the launch manifest.

    Attributes:
        clone: Absolute path of its clone.
        wrapper: Absolute path of its wrapper.
        environment: Absolute path of its virtual environment; null without one.
        probe: What its import probe found; null without one.
    """

    id: Identifier
    clone: str
    wrapper: str
    entry: Identifier
    plane: str
    hypothesis: str
    globs: tuple[str, ...]
    harness: HarnessName
    model: str | None
    budget: LaneBudget
    deadline_utc: UtcTime
    environment: str | None
    probe: str | None


class LaunchManifest(Record):
    """``launch.json``: the manifest that every driver takes."""

    format: Literal["roundkit-launch/1"]
    round_id: Identifier
    round_digest: Digest
    incumbent: CommitId
    protected_paths: tuple[str, ...]
    lanes: tuple[LaunchLane, ...]


class TicketStatus(Record):
    """One ticket's state as the coordinator mirrors it into the lane's ``.roundkit/status/``.

    Attributes:
        state: ``queued``, ``measuring``, ``measured`` or ``rejected``.
        verdict: Null before there is one.
    """

    ticket: str
    state: TicketState
    sequence: Count
    verdict: str | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    detail: str | None = None
