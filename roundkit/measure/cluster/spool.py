"""Records that a worker keeps until their coordinator has them, whatever becomes of the connection."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from roundkit.core.canonical import digest_bytes, digest_json, parse_json
from roundkit.core.clock import SteadyClock
from roundkit.core.errors import Refused
from roundkit.core.files import atomic_write
from roundkit.models.cluster import FinishedRun, RemoteReply, RemoteRequest

_RECORD = ".record.json"
_NOTE = ".note.json"


def run_identity(store_sha256: str, plan_digest: str, experiment_id: str) -> str:
    """Return the identity of a run: the same however often the same experiment is handed over.

    Args:
        store_sha256: Which store asks. Two copies of a round directory have the same plan and the same names.
        plan_digest: The frozen plan.
        experiment_id: The experiment.
    """
    return digest_json(
        {"store_sha256": store_sha256, "plan_digest": plan_digest, "experiment_id": experiment_id}
    )


class Spool:
    """One file a finished run, below one folder.

    Args:
        root: A folder of this worker alone; made when missing.
        clock: How long records have waited; started now unless given.
    """

    def __init__(self, root: Path, clock: SteadyClock | None = None) -> None:
        self._root = root
        self._clock = clock or SteadyClock.start()
        self._left: set[Path] = set()
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)

    def keep(self, request: RemoteRequest, reply: RemoteReply) -> None:
        """Keep the reply to a request.

        Raises:
            OSError: it cannot be written.
        """
        note = FinishedRun(
            run=request.run,
            store_sha256=request.store_sha256,
            plan_digest=request.plan_digest,
            experiment_id=request.request.experiment_id,
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
        for note in sorted(self._root.glob(f"*{_NOTE}")):
            try:
                found.append(FinishedRun.from_bytes(note.read_bytes(), place=note.name))
            except (FileNotFoundError, ValueError, Refused):
                continue
        return tuple(found)

    def drop_older(self, keep: timedelta) -> tuple[str, ...]:
        """Remove every file that nobody fetched, and return a line about each.

        What is no file, or cannot be removed, is left and said once.

        Args:
            keep: How long it stays at least; a clock that is set ahead meanwhile ages nothing.
        """
        lines: list[str] = []
        for path in sorted(self._root.iterdir(), reverse=True):  # a record before its note
            try:
                found = path.lstat()
                if self._clock.now() - datetime.fromtimestamp(found.st_mtime, UTC) < keep:
                    continue
                if not stat.S_ISREG(found.st_mode):
                    lines += self._leave(path, "it is no file")
                    continue
                line = f"nobody fetched it for {keep.days} days, so it is removed: {_in_words(path)}"
                if path.name.endswith(_RECORD):
                    self._note(path.name.removesuffix(_RECORD)).unlink(missing_ok=True)
                path.unlink()
                lines.append(line)
            except FileNotFoundError:  # fetched this moment, or gone with its record
                continue
            except OSError as error:
                lines += self._leave(path, str(error.strerror))
        return tuple(lines)

    def _leave(self, path: Path, why: str) -> tuple[str, ...]:
        if path in self._left:
            return ()
        self._left.add(path)
        return (f"{path.name!r} among the records is left where it is: {why}",)

    def _record(self, run: str) -> Path:
        return self._root / f"{run}{_RECORD}"

    def _note(self, run: str) -> Path:
        return self._root / f"{run}{_NOTE}"


def _in_words(path: Path) -> str:
    """Say which experiment a file is of; one that another version wrote, or a half of one, by its name."""
    data = path.read_bytes()
    try:
        record = parse_json(data, place=path.name, writable=True)["record"]
        name, owner = record["experiment_id"], record["round_id"]
        return f"the record of {name} of round {owner}, sha256 {digest_json(record)}"
    except (Refused, KeyError, TypeError, ValueError):
        return f"the file {path.name}, sha256 {digest_bytes(data)}"
