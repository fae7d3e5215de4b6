"""How a trial runs, copied out of the frozen plan."""

from __future__ import annotations

from roundkit.models.campaign import CampaignPlan
from roundkit.models.instruments import CountingTool
from roundkit.models.measurement import RunSpec
from roundkit.models.round_plan import FrozenRuntime, Gates, RoundPlan


def run_spec_of(plan: RoundPlan) -> RunSpec:
    """Return the run specification that every experiment of a round shares."""
    return campaign_run_spec(
        plan.campaign,
        plan_digest=plan.digest(),
        runtime=plan.runtime,
        protected_paths=plan.protected_paths,
        gates=plan.gates,
        pin_cpus=plan.cpu_pinning,
        counting_tool=plan.counting_tool,
    )


def campaign_run_spec(
    campaign: CampaignPlan,
    *,
    plan_digest: str,
    runtime: FrozenRuntime,
    protected_paths: tuple[str, ...],
    gates: Gates,
    pin_cpus: bool,
    counting_tool: CountingTool | None,
) -> RunSpec:
    """Return how trials of a campaign's benchmark run.

    Args:
        campaign: Metric, commands, variables and limits.
        plan_digest: Digest of the plan that the experiments belong to.
        runtime: The interpreter and the readable folders.
        protected_paths: Globs whose files come from the baseline.
        gates: The thresholds in force.
        pin_cpus: Whether trials are pinned to the cores of their device set.
        counting_tool: What counts instructions, where they decide.
    """
    return RunSpec(
        format="roundkit-run-spec/1",
        round_digest=plan_digest,
        metric=campaign.metric,
        benchmark=campaign.benchmark,
        validator=campaign.validator,
        runtime=runtime,
        environment=campaign.environment,
        limits=campaign.limits,
        protected_paths=protected_paths,
        hidden_paths=campaign.hidden_paths,
        gates=gates,
        repetitions=gates.repetitions,
        pin_cpus=pin_cpus,
        counting_tool=counting_tool,
    )
