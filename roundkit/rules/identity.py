"""What identifies a ticket, an attempt and an experiment."""

from __future__ import annotations

import hashlib
import hmac

from roundkit.core.canonical import digest_json

_TICKET_PREFIX_DIGITS = 8
_NEUTRAL_DIGITS = 16


def ticket_key(round_digest: str, lane: str, manifest_digest: str) -> str:
    """Return the full digest that the store keys a ticket by."""
    return digest_json({"round_digest": round_digest, "lane": lane, "manifest_digest": manifest_digest})


def ticket_name(round_id: str, lane: str, key: str) -> str:
    """Return the ticket's name: round, lane and the first 8 digits of its key."""
    return f"{round_id}-{lane}-{key[:_TICKET_PREFIX_DIGITS]}"


def short_ticket(ticket: str, round_id: str) -> str:
    """Return a ticket's name within its round: lane and digits, for tables that name the round already."""
    return ticket.removeprefix(f"{round_id}-")


def attempt_plan_digest(round_digest: str, lane_id: str, attempt_ordinal: int) -> str:
    """Return the identity of one attempt of a lane's agent."""
    return digest_json({"round_digest": round_digest, "lane_id": lane_id, "attempt_ordinal": attempt_ordinal})


def neutral_name(secret: bytes, what: str) -> str:
    """Return the name of a folder that confined commands may learn: it says nothing of what it is for.

    A command can read where its mounts come from. A name that told ticket, step or side would let a
    candidate behave by it.

    Args:
        secret: The coordinator's secret, so that nobody else can make the name.
        what: What it stands for, unique within the round.
    """
    return hmac.new(secret, f"folder {what}".encode(), hashlib.sha256).hexdigest()[:_NEUTRAL_DIGITS]


def experiment_name(subject: str, attempt: int) -> str:
    """Return the id of the n-th experiment for a subject."""
    return f"{subject}.{attempt}"
