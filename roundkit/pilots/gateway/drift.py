"""The change that a pilot makes to a task's own files once the agent has read the file that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.files import write_new
from roundkit.evidence import pilot_layout as layout
from roundkit.models.pilot_trial import DriftReceipt
from roundkit.pilots.gateway.files import CandidateFiles


@dataclass(frozen=True)
class Drift:
    """One trial's drift, before it is made.

    Attributes:
        tuple_id: The tuple.
        path: The file whose reading triggers it, and which it changes.
        content: What the file holds afterwards.
        trial: The trial's folder, for receipt and preimage.
    """

    tuple_id: str
    path: str
    content: bytes
    trial: Path

    def make(self, files: CandidateFiles, told: str, trigger: int) -> None:
        """Change the file, and leave a receipt.

        Args:
            files: The candidate's.
            told: Digest that the agent was told.
            trigger: Sequence of its read.

        Raises:
            FileExistsError: it was made before.
        """
        before = files.read(self.path) or b""
        write_new(self.trial / layout.DRIFT_PREIMAGE, before)
        files.write(self.path, self.content)
        receipt = DriftReceipt(
            format="roundkit-pilot-drift/1",
            tuple_id=self.tuple_id,
            path=self.path,
            trigger_sequence=trigger,
            before_sha256=told,
            after_sha256=digest_bytes(self.content),
            preimage=layout.DRIFT_PREIMAGE,
        )
        write_new(self.trial / layout.DRIFT, receipt.to_bytes())
