"""What a trial's prompt is, how its process ended, and what its checks say together."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.agent_run import AgentRun
from roundkit.models.pilot_trial import Acceptance, CheckResult, ProcessOutcome


def prompt_bytes(guide: bytes | None, prompt: bytes) -> bytes:
    """Return a trial's prompt: the variant's guide, where it has one, before the task's."""
    return prompt if guide is None else guide.rstrip(b"\n") + b"\n\n" + prompt


def process_outcome(run: AgentRun, gateway_failure: str | None) -> tuple[ProcessOutcome, str]:
    """Return how a trial's agent ended, with a line about it.

    Args:
        run: The agent's run.
        gateway_failure: What broke the gateway, so that the agent was ended over it; null where nothing did.
    """
    if gateway_failure is not None:
        return "error", gateway_failure
    if run.end_reason == "exited" and run.exit_code == 0:
        return "completed", run.detail
    if run.end_reason == "deadline":
        return "timeout", run.detail
    ended = f"exit code {run.exit_code}" if run.end_reason == "exited" else run.end_reason
    return "error", run.detail if run.detail.startswith(ended) else f"{ended}: {run.detail}".rstrip(": ")


def acceptance_of(candidate_sha256: str, checks: Sequence[CheckResult]) -> Acceptance:
    """Return what checks say together: passed when all are, failed when one is, else unavailable."""
    outcomes = {check.outcome for check in checks}
    reasons = [f"{check.check}: {check.reason}" for check in checks if check.outcome == "unavailable"]
    return Acceptance(
        candidate_sha256=candidate_sha256,
        checks=tuple(checks),
        outcome="failed" if "failed" in outcomes else "unavailable" if reasons else "passed",
        reason="; ".join(reasons) if reasons and "failed" not in outcomes else None,
    )


def same_acceptance(recorded: Acceptance, again: Acceptance) -> bool:
    """Say whether two decisions on one candidate are the same, check by check."""
    outcomes = [[(check.check, check.outcome) for check in one.checks] for one in (recorded, again)]
    same = outcomes[0] == outcomes[1] and recorded.outcome == again.outcome
    return same and recorded.candidate_sha256 == again.candidate_sha256
