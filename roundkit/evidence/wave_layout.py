"""Names within a wave campaign's folder, the one thing that drafter and gater have in common."""

from __future__ import annotations

PLAN = "plan.json"
TOOLS = "tools"
"""The campaign's own programs, as they were frozen."""
STOP = "stop"
"""Asks both halves to end after the current step."""
DRAFTER_LOCK = "drafter.lock"
GATER_LOCK = "gater.lock"
LEDGER = "ledger.jsonl"
EVENTS = "events.jsonl"
REJECTS = "rejects.jsonl"
PARKED = "parked"
LESSONS = "lessons"
"""One file a harvested wave."""

WAVES = "waves"
"""One folder a wave, named after its tag."""
WAVE = "wave.json"
DRAFTED = "drafted.json"
SHARDS = "shards"
"""One folder a shard: ``shard.json``, the task, the drafts, its log, ``end.json``."""
SHARD = "shard.json"
TASK = "task.json"
DRAFTS = "drafts"
END = "end.json"
GATES = "gates"
"""One folder a gate's run, never used twice: what was staged, what was answered, what was said."""


def wave_folder(tag: str) -> str:
    """Return the relative path of a wave."""
    return f"{WAVES}/{tag}"


def shard_folder(tag: str, index: int) -> str:
    """Return the relative path of a shard."""
    return f"{WAVES}/{tag}/{SHARDS}/{index:04d}"
