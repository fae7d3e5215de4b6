"""How a trial runs, copied out of the frozen plan of a round or of a comparison."""

from __future__ import annotations

from roundkit.models.comparison import ComparisonPlan
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec


def run_spec_of(plan: RoundPlan) -> RunSpec:
    """Return the run specification that every experiment of a round shares."""
    campaign = plan.campaign
    return RunSpec(
        format="roundkit-run-spec/1",
        round_digest=plan.digest(),
        metric=campaign.metric,
        benchmark=campaign.benchmark,
        validator=campaign.validator,
        runtime=plan.runtime,
        environment=campaign.environment,
        limits=campaign.limits,
        protected_paths=plan.protected_paths,
        hidden_paths=campaign.hidden_paths,
        gates=plan.gates,
        repetitions=plan.gates.repetitions,
        pin_cpus=plan.cpu_pinning,
        counting_tool=plan.counting_tool,
    )


def comparison_run_spec(plan: ComparisonPlan) -> RunSpec:
    """Return the run specification of a comparison outside a round; nothing in it but the plan's."""
    return RunSpec(
        format="roundkit-run-spec/1",
        round_digest=plan.digest(),
        metric=plan.metric,
        benchmark=plan.benchmark,
        validator=plan.validator,
        runtime=plan.runtime,
        environment=plan.environment,
        limits=plan.limits,
        protected_paths=plan.protected_paths,
        hidden_paths=plan.hidden_paths,
        gates=plan.gates,
        repetitions=plan.gates.repetitions,
        pin_cpus=True,
        counting_tool=plan.counting_tool,
    )
