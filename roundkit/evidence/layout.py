"""Names within an evidence folder, and how large a part of it may be before a reader gives up."""

from __future__ import annotations

import re

INDEX = "index.json"
SEAL = "index.json.sha256"
PLAN = "round-plan.json"
LEDGER = "round-ledger.json"
RUN_SPEC = "run-spec.json"
SECRET = "secret.json"  # noqa: S105
EVENTS = "events.jsonl"
EXPERIMENTS = "experiments"
BLOBS = "blobs"
DUPLICATES = "duplicates"

FOLDERS = (EXPERIMENTS, BLOBS, DUPLICATES)
UNINDEXED = frozenset({INDEX, SEAL})
REQUIRED = (PLAN, LEDGER, RUN_SPEC, SECRET, EVENTS)

MAX_FILES = 500_000
MAX_INDEX_BYTES = 256 << 20
MAX_RECORD_BYTES = 1 << 30

_EXPERIMENT = re.compile(r"experiments/[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.json")
_DUPLICATE = re.compile(r"duplicates/[0-9a-f]{64}\.json")
_BLOB = re.compile(r"blobs/[0-9a-f]{64}")


def experiment_file(experiment_id: str) -> str:
    """Return the relative path of an experiment's record."""
    return f"{EXPERIMENTS}/{experiment_id}.json"


def blob_file(digest: str) -> str:
    """Return the relative path of a submitted file's bytes."""
    return f"{BLOBS}/{digest}"


def duplicate_file(digest: str) -> str:
    """Return the relative path of a record that came in late."""
    return f"{DUPLICATES}/{digest}.json"


def is_known_name(path: str) -> bool:
    """Say whether a relative path is one that the format has a place for."""
    return path in REQUIRED or any(form.fullmatch(path) for form in (_EXPERIMENT, _BLOB, _DUPLICATE))


def seal_bytes(index_digest: str) -> bytes:
    """Return the seal of an index: its digest in the form that ``sha256sum -c`` reads."""
    return f"{index_digest}  {INDEX}\n".encode("ascii")
