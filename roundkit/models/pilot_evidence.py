"""What was read of a pilot's folder, before anything is decided: bytes, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field

FROZEN_PROMPT, FROZEN_GUIDE = "frozen prompt", "frozen guide"
"""Names under which a trial's files hold the task's frozen prompt and the variant's frozen guide."""


@dataclass(frozen=True)
class Artifact:
    """One file as it was found.

    Attributes:
        name: Its path below the trial's folder.
        data: Its bytes; null where they could not be read.
        problem: ``missing-file``, ``not-a-file``, ``hard-linked``, ``too-large``; null where there are bytes.
    """

    name: str
    data: bytes | None = field(default=None, repr=False)
    problem: str | None = None


@dataclass(frozen=True)
class TrialFiles:
    """Everything of one trial's folder that eligibility is decided on.

    Attributes:
        folder: The folder, relative to the pilot's.
        artifacts: By name; a name that was not asked for is missing.
        candidate_sha256: Tree digest of the archived candidate; null where there is none.
    """

    folder: str
    artifacts: dict[str, Artifact]
    candidate_sha256: str | None = None

    def get(self, name: str) -> Artifact:
        """Return a file, missing where nothing was found."""
        return self.artifacts.get(name) or Artifact(name, problem="missing-file")
