"""Typed recovery: what an agent's next write to a drifted file says, by a closed enumeration."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.core.canonical import digest_bytes
from roundkit.models.pilot_plan import FrozenTask
from roundkit.models.pilot_trial import DriftReceipt, GatewayCall, RecoveryKind
from roundkit.rules.pilot_answers import EXIT_CODES, READ, STALE_STDERR, WRITE
from roundkit.rules.pilot_calls import checked_calls
from roundkit.rules.pilot_reading import Bound, Ineligible

_RECEIPT, _PREIMAGE = "drift.json", "drift-preimage"


def recovery_of(trial: Bound, task: FrozenTask) -> RecoveryKind:
    """Decide what became of a task's drift.

    Args:
        trial: The trial's bound files.
        task: Its task, as it was frozen.

    Raises:
        Ineligible: the receipt, its preimage or the calls are missing, not those that were bound, or do not
            agree with each other, with the wire or with the task.
    """
    calls = checked_calls(trial)
    there = trial.files.get(_RECEIPT).problem != "missing-file" or trial.entry(_RECEIPT) is not None
    if task.task.drift is None:
        if there:
            raise Ineligible("disagrees", "there is a drift receipt, and the task has no drift")
        return "not-asked"
    path = task.task.drift.path
    first = next((call for call in calls if _reads(call, path)), None)
    if not there:
        if first is not None:
            raise Ineligible("missing", f"call {first.sequence} read {path}, and there is no drift receipt")
        return "no-trigger"
    receipt = trial.read(_RECEIPT, DriftReceipt)
    _check_receipt(trial, task, receipt, first)
    return _of_next_write([call for call in calls if call.sequence > receipt.trigger_sequence], path, receipt)


def _reads(call: GatewayCall, path: str) -> bool:
    told = call.tool == READ and call.code == "ok" and call.response_line is not None
    return told and call.path == path


def _check_receipt(trial: Bound, task: FrozenTask, receipt: DriftReceipt, first: GatewayCall | None) -> None:
    drift = task.task.drift
    if drift is None or receipt.path != drift.path:
        raise Ineligible(
            "disagrees", f"the drift was made to {receipt.path}, which the task does not declare"
        )
    if receipt.tuple_id != trial.record.tuple_id:
        raise Ineligible("substituted", "the drift receipt is another tuple's")
    if first is None or first.sequence != receipt.trigger_sequence:
        raise Ineligible(
            "disagrees", f"call {receipt.trigger_sequence} is not the first read of {drift.path}"
        )
    if receipt.preimage != _PREIMAGE or digest_bytes(trial.data(_PREIMAGE)) != receipt.before_sha256:
        raise Ineligible("disagrees", "the archived preimage is not what the receipt says was there")
    if first.found_sha256 != receipt.before_sha256:
        raise Ineligible("disagrees", "the agent was shown other content than the preimage")
    if receipt.after_sha256 != task.drift_sha256:
        raise Ineligible("disagrees", "the receipt's new content is not the frozen drift's")


def _of_next_write(later: Sequence[GatewayCall], path: str, receipt: DriftReceipt) -> RecoveryKind:
    for call in later:
        if call.tool != WRITE or call.path not in {path, None}:
            continue
        if call.code == "malformed" or call.path is None:
            return "malformed"  # a write that names no path may have been meant for this one
        if call.expected_sha256 == receipt.after_sha256 and call.code == "ok":
            return "recovered"
        if call.expected_sha256 == receipt.before_sha256:
            _check_rejection(call)
            return "rejected-stale-write"
        return "wrong-digest"
    return "no-next-write"


def _check_rejection(call: GatewayCall) -> None:
    """Take a stale write for refused only with exactly what the gateway answers then."""
    said = (call.code, call.exit_code, call.stdout_sha256, call.stderr_sha256)
    if said != ("stale", EXIT_CODES["stale"], digest_bytes(b""), digest_bytes(STALE_STDERR.encode())):
        raise Ineligible(
            "disagrees", f"call {call.sequence} named the old content and was not refused for it"
        )
