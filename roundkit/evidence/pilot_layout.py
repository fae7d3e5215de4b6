"""Names within a paired pilot's folder, which is its evidence: nothing in it is rewritten or removed."""

from __future__ import annotations

PLAN = "plan.json"
INPUTS = "inputs"
"""Frozen copies: ``tasks/<id>/{fixture,prompt,rubric,drift,hidden/<check>}``, ``variants/<id>/guide``,
``tools/<name>``, ``scripts``."""
TRIALS = "trials"
"""One folder an attempt at a slot, ``<order>-<tuple id>``; its name is its attempt."""
SETUP = "setup"
"""Attempts outside the matrix, to see that everything works."""
REPLAYS = "replays"
"""One file for each replay, as :func:`replay_name` says; older versions numbered them."""
WORK = "work"
"""The running coordinator's own: its lock, and an agent's home and scratch while it lives. No evidence."""
PUBLISHED = "published.json"
"""In place of plan and trials: a cohort that others ran and published, entered as records."""

START = "start.json"
RECORD = "record.json"
PROMPT = "prompt.md"
WIRE = "wire.jsonl"
CALLS = "calls.jsonl"
DRIFT = "drift.json"
DRIFT_PREIMAGE = "drift-preimage"
PRESENTATION = "presentation.json"
INTERVENTIONS = "interventions.jsonl"
CANDIDATE = "candidate"
"""The files that the agent left, as they were when nothing of it lived any more."""
DIFF = "candidate.diff"
AGENT = "agent"
STDOUT = "agent/stdout"
STDERR = "agent/stderr"
"""What the agent printed, bounded and without its keys."""

REVIEW = "review"
"""Below a trial's folder: everything of its review."""
PACKET = "packet.json"
PACKET_FILES = "packet"
SESSION = "session.json"
MARKS = "marks.jsonl"
FINISHED = "review.json"


def trial_folder(order: int, tuple_id: str) -> str:
    """Return the relative path of an attempt at a slot."""
    return f"{TRIALS}/{order:03d}-{tuple_id}"


def replay_name(tuple_id: str, sha256: str) -> str:
    """Return the name of a replay's record below ``replays``: the digest in it is that of its own bytes."""
    return f"{tuple_id}-{sha256}.json"


def task_input(task: str, name: str) -> str:
    """Return the relative path of a task's frozen input, e.g. ``fixture`` or ``hidden/<check>``."""
    return f"{INPUTS}/tasks/{task}/{name}"


def variant_guide(variant: str) -> str:
    """Return the relative path of a variant's frozen guide."""
    return f"{INPUTS}/variants/{variant}/guide"


def tool_files(tool: str) -> str:
    """Return the relative path of a tool's frozen files."""
    return f"{INPUTS}/tools/{tool}"


SCRIPTS = f"{INPUTS}/scripts"
"""A scripted agent's program."""

FINDINGS = "findings.yaml"
"""What people found in it, each finding citing a file; written by hand, and checked by the audit."""
