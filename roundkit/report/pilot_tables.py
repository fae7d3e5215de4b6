"""The tables of a pilot's report about its tuples, each a function from a pilot to rows, with raw counts."""

from __future__ import annotations

from roundkit.audit import PilotSource
from roundkit.core.text import counted
from roundkit.models.pilot_cohort import Observation
from roundkit.report import pilot_words as words
from roundkit.report.views import Heading, Missing, Table, Value
from roundkit.rules.pilot_summary import cells, costs

_NO_RECORD = "no record"


def task_table(pilot: PilotSource) -> Table:
    """Each task with its variants one below the other: acceptance, calls and usage."""
    return Table(
        "Each task with each variant, over all of its repetitions",
        (
            Heading("task", "code"),
            Heading("variant", "code"),
            Heading("retained"),
            Heading("fully accepted"),
            Heading("calls", "number"),
            Heading("failed calls", "number"),
            Heading("wall (s)", "number"),
            Heading("input tokens", "number"),
            Heading("output tokens", "number"),
        ),
        tuple(
            (
                cell.task,
                cell.variant,
                f"{cell.recorded} of {cell.expected}",
                f"{cell.accepted} of {cell.expected}",
                words.summed(cell.calls),
                words.summed(cell.failed_calls),
                words.summed_s(cell.wall_ms),
                words.summed(cell.input_tokens),
                words.summed(cell.output_tokens),
            )
            for cell in cells(pilot.cohort)
        ),
    )


def context_table(pilot: PilotSource) -> Table:
    """The same for context, recovery, validation, review and interventions."""
    return Table(
        "Context, recovery, validation and review",
        (
            Heading("task", "code"),
            Heading("variant", "code"),
            Heading("presented (bytes)", "number"),
            Heading("recovery"),
            Heading("validation (s)", "number"),
            Heading("active review (s)", "number"),
            Heading("interventions", "number"),
        ),
        tuple(
            (
                cell.task,
                cell.variant,
                words.summed(cell.presented_bytes),
                words.listed(cell.recovery),
                words.summed_s(cell.validation_ms),
                words.summed_s(cell.active_ms),
                words.summed(cell.interventions),
            )
            for cell in cells(pilot.cohort)
        ),
    )


def pair_table(pilot: PilotSource) -> Table:
    """Each pair: one task and repetition, its variants side by side."""
    cohort = pilot.cohort
    found = {(each.slot.task, each.slot.repetition, each.slot.variant): each for each in cohort.observations}
    return Table(
        "Pairs",
        (Heading("task", "code"), Heading("repetition", "number"), *map(Heading, cohort.variants)),
        tuple(
            (task, repetition, *(_pair_cell(found.get((task, repetition, each))) for each in cohort.variants))
            for task in cohort.tasks
            for repetition in range(1, cohort.repetitions + 1)
        ),
    )


def tuple_table(pilot: PilotSource) -> Table:
    """Every tuple, in the frozen order, whatever came of it."""
    return Table(
        "Every tuple",
        (
            Heading("#", "number"),
            Heading("tuple", "code"),
            Heading("process"),
            Heading("acceptance", "verdict"),
            Heading("checks"),
            Heading("calls", "number"),
            Heading("failed calls", "number"),
            Heading("wall (s)", "number"),
            Heading("interventions", "number"),
            Heading("eligible"),
            Heading("detail", "prose"),
        ),
        tuple(_tuple_row(each) for each in pilot.cohort.observations),
    )


def token_table(pilot: PilotSource) -> Table:
    """Tokens of every tuple by component; what was not reported is unknown."""
    return Table(
        "Tokens by component",
        (
            Heading("tuple", "code"),
            Heading("input", "number"),
            Heading("cached input", "number"),
            Heading("cache writes", "number"),
            Heading("output", "number"),
            Heading("reasoning, of the output", "number"),
            Heading("in flight at the end"),
        ),
        tuple(
            (
                each.tuple_id,
                words.known(each.tokens.input),
                words.known(each.tokens.cached_input),
                words.known(each.tokens.cache_write),
                words.known(each.tokens.output),
                words.known(each.tokens.reasoning),
                words.UNKNOWN if each.tokens.partial else "none" if each.state == "recorded" else None,
            )
            for each in pilot.cohort.observations
        ),
    )


def cost_table(pilot: PilotSource) -> Table:
    """What attempts used, those that failed by how they ended."""
    return Table(
        "What attempts used",
        (
            Heading("attempts that were"),
            Heading("number", "number"),
            Heading("calls", "number"),
            Heading("failed calls", "number"),
            Heading("wall (s)", "number"),
            Heading("input tokens", "number"),
            Heading("cached input", "number"),
            Heading("output", "number"),
            Heading("reasoning", "number"),
            Heading("USD", "number"),
            Heading("with usage in flight unknown", "number"),
        ),
        tuple(
            (
                each.name,
                each.attempts,
                words.summed(each.calls),
                words.summed(each.failed_calls),
                words.summed_s(each.wall_ms),
                words.summed(each.input_tokens),
                words.summed(each.cached_input_tokens),
                words.summed(each.output_tokens),
                words.summed(each.reasoning_tokens),
                words.dollars(each.micro_usd),
                each.partial,
            )
            for each in costs(pilot.cohort)
        ),
        empty="No attempt was made.",
    )


def _pair_cell(row: Observation | None) -> Value:
    if row is None or row.state != "recorded":
        return Missing(_NO_RECORD)
    return f"{row.acceptance or 'nothing to check'}, {row.process}, {counted(row.calls or 0, 'call')}"


def _tuple_row(row: Observation) -> tuple[Value, ...]:
    if row.state != "recorded":
        nothing: tuple[Value, ...] = (None,) * 6
        return (row.slot.order, row.tuple_id, row.state, *nothing, "no", _NO_RECORD)
    passed = sum(result.outcome == "passed" for result in row.checks)
    return (
        row.slot.order,
        row.tuple_id,
        row.process,
        row.acceptance or "nothing to check",
        f"{passed} of {len(row.checks)}" if row.checks else None,
        row.calls,
        row.failed_calls,
        words.seconds(row.wall_ms, "unknown"),
        Missing("ineligible") if row.eligibility.interventions is None else row.eligibility.interventions,
        "yes" if row.eligibility.eligible else "no",
        row.detail or (f"{row.process_word} in the source" if row.process_word != row.process else None),
    )
