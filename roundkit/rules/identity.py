"""What identifies a ticket, an attempt and an experiment."""

from __future__ import annotations

from roundkit.core.canonical import digest_json

_TICKET_PREFIX_DIGITS = 8


def ticket_key(round_digest: str, lane: str, manifest_digest: str) -> str:
    """Return the full digest that the store keys a ticket by."""
    return digest_json({"round_digest": round_digest, "lane": lane, "manifest_digest": manifest_digest})


def ticket_name(round_id: str, lane: str, key: str) -> str:
    """Return the ticket's name: round, lane and the first 8 digits of its key."""
    return f"{round_id}-{lane}-{key[:_TICKET_PREFIX_DIGITS]}"


def attempt_plan_digest(round_digest: str, lane_id: str, attempt_ordinal: int) -> str:
    """Return the identity of one attempt of a lane's agent."""
    return digest_json({"round_digest": round_digest, "lane_id": lane_id, "attempt_ordinal": attempt_ordinal})


def experiment_name(subject: str, attempt: int) -> str:
    """Return the id of the n-th experiment for a subject."""
    return f"{subject}.{attempt}"
