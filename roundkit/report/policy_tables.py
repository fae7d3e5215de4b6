"""The tables of a policy pilot's report, each a function from the pilot to rows."""

from __future__ import annotations

from roundkit.models.attempts import Cost
from roundkit.models.policy_run import PairOutcome, PolicyRound, PolicyRunRecord
from roundkit.report import policy_words as words
from roundkit.report.markup import ratio
from roundkit.report.policy_source import PolicySource
from roundkit.report.views import Heading, Missing, Table, Value
from roundkit.rules.policy_bound import QueueBound, measurement_queue_bound
from roundkit.rules.policy_cost import (
    ExperimentCount,
    parallel_experiments,
    ratio_of_bounds,
    serial_experiments,
)
from roundkit.rules.policy_result import state_of
from roundkit.rules.policy_workload import mean_wait_s

_MICRO = 1_000_000
_NOT_COUNTED = "not counted"
_UNMEASURABLE = "the standalone gain is not clear of 0"


def runs_table(source: PolicySource) -> Table:
    """Every run in the order in which they ran."""
    return Table(
        "Every run",
        (
            Heading("run", "code"), Heading("what became of it"), Heading("time to the target (s)", "number"),
            Heading("ended after (s)", "number"), Heading("ended by"), Heading("rounds", "number"),
            Heading("final gain", "percent"), Heading("detail", "prose"),
        ),
        tuple(
            (
                record.run_id, state_of(record),
                record.target_s if record.target_s is not None else state_of(record),
                record.wall_s if record.wall_s is not None else Missing(_untold(record)), record.end,
                len(record.rounds),
                record.final_gain if record.final_gain is not None else Missing(record.process),
                record.detail or None,
            )
            for record in source.records
        ),
        empty="No run has been made.",
    )  # fmt: skip


def pairs_table(source: PolicySource) -> Table:
    """Every repetition pair with its ratio and its first."""
    pairs = source.decision.pairs if source.decision else ()
    return Table(
        "Repetition pairs",
        (
            Heading("pair", "number"), Heading("P (s)", "number"), Heading("S (s)", "number"),
            Heading("P / S", "number"), Heading("first"),
        ),
        tuple(
            (
                pair.repetition, pair.p_s if pair.p_s is not None else _no_time(source, "P", pair.repetition),
                pair.s_s if pair.s_s is not None else _no_time(source, "S", pair.repetition),
                _ratio(pair), pair.winner,
            )
            for pair in pairs
        ),
        empty="Pairs are compared once every run has been made.",
    )  # fmt: skip


def arms_table(source: PolicySource) -> Table:
    """Medians and ranges of each arm."""
    rows: list[tuple[Value, ...]] = []
    arms = {arm: source.of(arm) for arm in source.arms}
    for name, of in (
        ("runs", lambda own: str(len(own))),
        ("time to the target", words.times),
        ("final gain", words.gains),
        ("device-hours", lambda own: words.spread([record.device_hours for record in own])),
        ("utilization of device sets", lambda own: words.shares([record.utilization for record in own])),
        ("mean wait for a device", lambda own: words.spread([_wait(record) for record in own], " s")),
        ("tokens", lambda own: words.spread([record.tokens for record in own])),
        ("USD", lambda own: words.spread([_usd(record) for record in own])),
        ("experiments", lambda own: words.spread([sum(record.experiments.values()) for record in own])),
        ("lanes lost in composition", lambda own: words.spread([len(record.lost) for record in own])),
    ):
        rows.append((name, *(of(own) for own in arms.values())))
    return Table(
        "Medians, and ranges in parentheses",
        (Heading("of each run"), *(Heading(arm) for arm in arms)),
        tuple(rows) if arms else (),
        empty="No run has been made.",
    )


def costs_table(source: PolicySource) -> Table:
    """What each run used; what nobody counted is missing."""
    return Table(
        "What each run used",
        (
            Heading("run", "code"), Heading("charged"), Heading("tokens", "number"), Heading("USD", "number"),
            Heading("device-hours", "number"),
            Heading("utilization", "percent"), Heading("mean wait (s)", "number"), Heading("experiments"),
        ),
        tuple(
            (
                record.run_id, _charged(record.charged) or Missing("no attempt was capped"),
                record.tokens if record.tokens is not None else Missing(_NOT_COUNTED),
                _usd(record) if _usd(record) is not None else Missing(_NOT_COUNTED),
                record.device_hours if record.device_hours is not None else Missing(_untold(record)),
                record.utilization, _wait(record), _counts(record.experiments),
            )
            for record in source.records
        ),
    )  # fmt: skip


def interactions_table(source: PolicySource) -> Table:
    """Every composition step's interaction ratio, and whether its lane lost its gain there."""
    lost = {name for record in source.records for name in record.lost}
    return Table(
        "Interaction ratios",
        (
            Heading("round", "code"), Heading("step", "number"), Heading("lane", "code"),
            Heading("ratio", "number"), Heading("standalone gain"), Heading("lost its gain"),
        ),
        tuple(
            (
                step.round_id, step.step, step.lane,
                ratio(step.value) if step.value is not None else Missing(_UNMEASURABLE), step.basis,
                f"{step.round_id}-{step.lane}" in lost,
            )
            for record in source.records
            for step in record.interactions
        ),
        empty="No lane was composed.",
    )  # fmt: skip


def rejected_table(source: PolicySource) -> Table:
    """Submissions that came to nothing, by cause and arm."""
    causes = sorted({cause for record in source.records for cause in record.rejected})
    return Table(
        "Submissions that came to nothing",
        (Heading("cause"), *(Heading(arm, "number") for arm in source.arms)),
        tuple(
            (cause, *(sum(r.rejected.get(cause, 0) for r in source.of(arm)) for arm in source.arms))
            for cause in causes
        ),
        empty="None: every submission passed.",
    )


def bounds_table(source: PolicySource) -> Table:
    """The two bounds, the figures that they come from, and what each policy measures by the cost model."""
    work = source.workload
    if work is None:
        return Table(
            "The two bounds", (Heading("figure"),), (), empty="No agent ran, or nothing was measured."
        )
    rows: tuple[tuple[Value, ...], ...] = (
        ("N, lanes of a round of P", work.lanes),
        ("A, median work of one agent without waiting (s)", work.agent),
        ("s, measured candidates an attempt", work.submissions),
        ("M, median time of one candidate on a device set (s)", work.measurement),
        ("D, device sets", work.device_sets),
        ("N(A + sM), one after the other (s)", source.serial_s),
        ("max(A + sM, N·s·M / D), side by side (s)", source.parallel_s),
        ("ratio of the two", ratio_of_bounds(work)),
        ("one round of P measures", _model(parallel_experiments(work.lanes, work.submissions))),
        ("N rounds of S measure", _model(serial_experiments(work.lanes, work.submissions))),
    )
    return Table("The two bounds", (Heading("figure"), Heading("value")), rows)


def places_table(source: PolicySource) -> Table:
    """Where every run falls between the two bounds: 0 at the one side by side, 1 at the other."""
    serial, parallel = source.serial_s, source.parallel_s
    rows: list[tuple[Value, ...]] = []
    for record in source.records:
        time = record.target_s if record.target_s is not None else record.wall_s
        if time is None or serial is None or parallel is None or serial == parallel:
            rows.append((record.run_id, state_of(record), Missing("no time, or no two bounds")))
        else:
            rows.append((record.run_id, state_of(record), (time - parallel) / (serial - parallel)))
    return Table(
        "Where the runs fall: 0 at the bound side by side, 1 at the bound one after the other",
        (
            Heading("run", "code"),
            Heading("what became of it"),
            Heading("place (0 side by side, 1 one after the other)", "number"),
        ),
        tuple(rows),
    )


def queue_bound_table(source: PolicySource) -> Table:
    """The measurement-queue bound of every round."""
    rows = [
        (run, bound.round_id, bound.tickets, *_bounded(bound))
        for run, views in source.views.items()
        for bound in map(measurement_queue_bound, views)
    ]
    return Table(
        "Measurement-queue bound",
        (
            Heading("run", "code"), Heading("round", "code"), Heading("candidates", "number"),
            Heading("their measurements (s)", "number"), Heading("close (s)", "number"),
            Heading("together (s)", "number"),
        ),
        tuple(rows),
        empty="No round was closed.",
    )  # fmt: skip


def rounds_table(source: PolicySource) -> Table:
    """Every round of every run."""
    return Table(
        "Every round",
        (
            Heading("round", "code"), Heading("lanes", "code"), Heading("gain of its rerun", "percent"),
            Heading("gain of the run so far", "percent"), Heading("rerun ended after (s)", "number"),
            Heading("evidence", "code"),
        ),
        tuple(
            (
                row.round_id, " ".join(row.lanes),
                row.gain if row.gain is not None else Missing("the incumbent stays"), row.total_gain,
                row.elapsed_s if row.elapsed_s is not None else Missing(_without_end(record, row)),
                row.evidence_sha256,
            )
            for record in source.records
            for row in record.rounds
        ),
        empty="No round was closed.",
    )  # fmt: skip


def _no_time(source: PolicySource, arm: str, repetition: int) -> str:
    states = {record.run_id: state_of(record) for record in source.records}
    return states.get(f"{arm}.{repetition}", "not run")


def _untold(record: PolicyRunRecord) -> str:
    """Say why a run has no times: it broke, or the host's clock was set during it."""
    return record.process if record.process != "completed" else record.detail


def _without_end(record: PolicyRunRecord, row: PolicyRound) -> str:
    return _untold(record) if row.advanced else "no passing rerun"


def _ratio(pair: PairOutcome) -> Value:
    """Return a pair's ratio, or its limit where one of both is censored."""
    if pair.ratio is not None:
        return pair.ratio
    limits = {"P": "0, the limit", "S": "infinite, the limit"}
    return limits.get(pair.winner) or Missing("no first")


def _charged(cost: Cost) -> str:
    units = {"turns": "turns", "tokens": "tokens", "micro_usd": "micro-USD", "wall_s": "s"}
    amounts = ((getattr(cost, name), unit) for name, unit in units.items())
    return ", ".join(f"{amount:,} {unit}" for amount, unit in amounts if amount is not None)


def _bounded(bound: QueueBound) -> tuple[Value, ...]:
    if not bound.tickets:
        nothing = Missing("nothing measured")
        return (nothing, nothing, nothing)
    return (bound.tickets_s, bound.close_s, bound.total_s)


def _wait(record: PolicyRunRecord) -> float | None:
    return mean_wait_s([wait.wait_s for wait in record.waits])


def _usd(record: PolicyRunRecord) -> float | None:
    return record.micro_usd / _MICRO if record.micro_usd is not None else None


def _counts(experiments: dict[str, int]) -> str:
    return ", ".join(f"{count} {purpose}" for purpose, count in experiments.items())


def _model(count: ExperimentCount) -> str:
    steps = f"{count.steps} composition steps, " if count.steps else ""
    return f"{count.tickets:.4g} tickets, {steps}{count.reruns} rerun{'s' * (count.reruns != 1)}"
