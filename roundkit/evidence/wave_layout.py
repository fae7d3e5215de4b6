"""Names within a wave campaign's folder, the one thing that drafter and gater have in common."""

from __future__ import annotations

INDEX = "waves-index.json"
"""Of an export: every file with its size and digest."""
SEAL = "waves-index.json.sha256"
PLAN = "plan.json"
TOOLS = "tools"
"""The campaign's own programs, as they were frozen."""
STOP = "stop"
"""Asks both halves to end after the current step."""
DRAFTER_LOCK = "drafter.lock"
GATER_LOCK = "gater.lock"
RUN_LOCK = "run.lock"
DRAFTER = "drafter.json"
"""What the drafter is at."""
DRAFTER_LOG = "drafter.log"
GATER_LOG = "gater.log"
DRAWS = "draws"
"""One folder a draw that is going on; what it decided is in its wave."""
LEDGER = "ledger.jsonl"
EVENTS = "events.jsonl"
REJECTS = "rejects.jsonl"
PARKED = "parked"
LESSONS = "lessons"
"""One file a harvested wave."""

WAVES = "waves"
"""One folder a wave, named after its tag."""
WAVE = "wave.json"
DEALT = "dealt.json"
DRAFTED = "drafted.json"
TRAFFIC = "traffic.json"
DECISION = "decision.json"
SHARDS = "shards"
"""One folder a shard: ``shard.json``, its task and inputs, its drafts and requests, its log, ``end.json``."""
SHARD = "shard.json"
TASK = "task.json"
INPUTS = "inputs"
"""Copies of its targets' inputs, as they were when it started."""
DRAFTS = "drafts"
REQUESTS = "requests"
"""Folder in which its agent keeps its own file of request events."""
REQUEST_EVENTS = "events.jsonl"
AGENT_LOG = "agent.log"
END = "end.json"
GATES = "gates"
"""One folder a gate's run, never used twice: what was staged, what was answered, what was said."""


def seal_bytes(index_digest: str) -> bytes:
    """Return the seal of an export's index, in the form that ``sha256sum --check`` takes."""
    return f"{index_digest}  {INDEX}\n".encode("ascii")


def wave_folder(tag: str) -> str:
    """Return the relative path of a wave."""
    return f"{WAVES}/{tag}"


def shard_folder(tag: str, index: int) -> str:
    """Return the relative path of a shard."""
    return f"{WAVES}/{tag}/{SHARDS}/{index:04d}"
