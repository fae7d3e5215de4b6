"""Records that a worker keeps until their coordinator has them, whatever becomes of the connection."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.canonical import digest_json
from roundkit.core.errors import Refused
from roundkit.core.files import atomic_write
from roundkit.models.cluster import FinishedRun, RemoteReply, RemoteRequest


def run_identity(plan_digest: str, experiment_id: str) -> str:
    """Return the identity of a run: the same however often the same experiment is handed over."""
    return digest_json({"plan_digest": plan_digest, "experiment_id": experiment_id})


class Spool:
    """One file a finished run, below one folder.

    Args:
        root: A folder of this worker alone; made when missing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)

    def keep(self, request: RemoteRequest, reply: RemoteReply) -> None:
        """Keep the reply to a request.

        Raises:
            OSError: it cannot be written.
        """
        note = FinishedRun(
            run=request.run, plan_digest=request.plan_digest, experiment_id=request.request.experiment_id
        )
        atomic_write(self._record(request.run), reply.to_bytes(), mode=0o600)
        atomic_write(self._note(request.run), note.to_bytes(), mode=0o600)

    def get(self, run: str) -> RemoteReply | None:
        """Return the reply of a finished run, None where there is none."""
        try:
            return RemoteReply.from_bytes(self._record(run).read_bytes(), place=run)
        except (FileNotFoundError, ValueError, Refused):
            return None

    def forget(self, run: str) -> None:
        """Remove a reply that its coordinator has."""
        self._note(run).unlink(missing_ok=True)
        self._record(run).unlink(missing_ok=True)

    def all(self) -> tuple[FinishedRun, ...]:
        """Return every run that waits, in a fixed order."""
        found = []
        for note in sorted(self._root.glob("*.note.json")):
            try:
                found.append(FinishedRun.from_bytes(note.read_bytes(), place=note.name))
            except (FileNotFoundError, ValueError, Refused):
                continue
        return tuple(found)

    def _record(self, run: str) -> Path:
        return self._root / f"{run}.record.json"

    def _note(self, run: str) -> Path:
        return self._root / f"{run}.note.json"
