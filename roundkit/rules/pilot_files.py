"""What lay at each path between a trial's calls: every call found what the one before it had left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roundkit.models.pilot_trial import DriftReceipt, GatewayCall
from roundkit.rules.pilot_answers import DELETE, OWN_TOOLS, WRITE

Lying = dict[str, str | None]
"""Digest of what lies at a path, null where nothing does; a path of which nobody knows is not in it."""


def follow(
    calls: Sequence[GatewayCall], before: Mapping[str, str | None], drift: DriftReceipt | None
) -> tuple[Lying, str | None]:
    """Return what lies at the paths that are known after the last call, and the first call that denies that.

    Args:
        calls: A trial's calls, as the wire shows them.
        before: What lay there before the first one.
        drift: The drift that was made in between; null without one.
    """
    lying = dict(before)
    for call in calls:
        if call.tool not in OWN_TOOLS:
            lying.clear()  # a program changes what it wants
        if call.path is not None:
            if (problem := _problem(call, lying)) is not None:
                return lying, f"call {call.sequence} {problem}"
            lying[call.path] = call.after_sha256
        if drift is not None and drift.trigger_sequence == call.sequence:
            lying[drift.path] = drift.after_sha256
    return lying, None


def _problem(call: GatewayCall, lying: Mapping[str, str | None]) -> str | None:
    found = lying.get(call.path or "", call.found_sha256)
    if call.found_sha256 != found:
        return f"found {call.found_sha256} at {call.path}, where {found} lay"
    changes = call.tool in {WRITE, DELETE}
    agrees = call.expected_sha256 == call.found_sha256
    if changes and call.code in {"ok", "stale"} and agrees != (call.code == "ok"):
        return f"named {call.expected_sha256} and found {call.found_sha256}, and was answered {call.code}"
    if call.tool == DELETE and call.code == "ok":
        return None if call.after_sha256 is None else f"deleted {call.path} and left {call.after_sha256}"
    if not (call.tool == WRITE and call.code == "ok") and call.after_sha256 != call.found_sha256:
        return f"changed nothing at {call.path}, found {call.found_sha256} and left {call.after_sha256}"
    return None
