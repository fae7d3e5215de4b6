"""What ``roundkit pilot`` does with pilots of kind ``policy``."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.canonical import digest_file
from roundkit.core.errors import refuse
from roundkit.core.progress import Progress
from roundkit.evidence import policy_layout as layout
from roundkit.pilots.kinds import Report
from roundkit.pilots.policy.folder import PolicyFolder, open_policy
from roundkit.pilots.policy.prepare import prepare_policy
from roundkit.pilots.policy.run import run_policy, run_sentence
from roundkit.rules.pilot_chain import head_line
from roundkit.rules.policy_decision import equal_arms_say_faster


def prepare(draft_file: Path, out: Path, progress: Progress) -> Report:
    """Freeze a policy pilot; say its order, the odds of its decision rule, and its digest.

    Raises:
        Refused: with every problem found; nothing was written.
    """
    plan = prepare_policy(draft_file, out, progress=progress)
    odds = equal_arms_say_faster(plan.repetitions)
    return Report(
        (
            f"policy pilot {plan.pilot_id} frozen at {out}",
            f"runs in this order: {' '.join(slot.run_id for slot in plan.schedule)}",
            f"equal arms would be called faster in at most {odds:.1%} of pilots with this many pairs",
            f"digest {plan.digest()}",
        )
    )


def run(root: Path, only: str | None, setup: str | None, progress: Progress) -> Report:
    """Run what is left, or one run such as ``P.2``.

    Raises:
        Refused: nothing more was started, for the reason given; ``no-setup``: there are no setup attempts.
    """
    if setup is not None:
        raise refuse(
            "no-setup", "a policy pilot has no attempts outside its schedule", place="--setup",
            remedy="try its rounds by hand, or freeze a smaller pilot",
        )  # fmt: skip
    run_policy(root, only=only, report=progress.say, progress=progress)
    pilot = open_policy(root)
    records = [pilot.record(slot) for slot in pilot.plan.schedule]
    failed = any(record is not None and record.process != "completed" for record in records)
    return Report(_standing(pilot), failed=failed)


def status(root: Path) -> Report:
    """Say how a pilot stands; nothing is changed by that."""
    pilot = open_policy(root)
    lines = []
    for slot in pilot.plan.schedule:
        record = pilot.record(slot)
        if record is not None:
            lines.append(f"{slot.run_id}: {run_sentence(record)}")
        elif pilot.run(slot).exists():
            lines.append(f"{slot.run_id}: no record yet")
    return Report((*_standing(pilot), *lines))


def _standing(pilot: PolicyFolder) -> tuple[str, ...]:
    waiting = [slot for slot in pilot.plan.schedule if not pilot.run(slot).exists()]
    total = len(pilot.plan.schedule)
    count = f"{pilot.plan.pilot_id}: {total - len(waiting)} of {total} runs started"
    chain = pilot.chain()
    broken = (f"broken chain: {each.where} {each.detail}" for each in chain.problems)
    decided = pilot.root / layout.DECISION
    digest = [f"decision.json {digest_file(decided)}"] if decided.is_file() else []
    following = (f"next: {slot.run_id}" for slot in waiting[:1])
    return (count, *broken, *following, head_line(chain, "run"), *digest)
