"""Charts: each a function from frames to an Altair chart with a title, a description and its own rows.

A chart holds its data as one inline list of rows, rounded to what is shown; a table of the same rows stands
beside it in every report. Colours are those of Okabe and Ito; shape or text says the same without colour.
"""

from roundkit.analysis.charts.branches import branch_layout
from roundkit.analysis.charts.budgets import budget_burn
from roundkit.analysis.charts.comparison import pair_gains
from roundkit.analysis.charts.composition import composition_chain, interaction_ratios
from roundkit.analysis.charts.machine import aa_history, device_timeline, queue_wait
from roundkit.analysis.charts.overview import gain_distribution, rounds_over_time, verdict_counts
from roundkit.analysis.charts.pilots import pilot_calls, pilot_outcomes
from roundkit.analysis.charts.policy import runs_and_bounds, time_to_target
from roundkit.analysis.charts.promise import ticket_against_rerun
from roundkit.analysis.charts.tickets import gains, raw_samples
from roundkit.analysis.charts.wave_fleet import fleet
from roundkit.analysis.charts.waves import (
    banked_by_wave,
    refusals_by_source,
    reject_reasons,
    throughput_by_workers,
)

__all__ = [
    "aa_history",
    "banked_by_wave",
    "branch_layout",
    "budget_burn",
    "composition_chain",
    "device_timeline",
    "fleet",
    "gain_distribution",
    "gains",
    "interaction_ratios",
    "pair_gains",
    "pilot_calls",
    "pilot_outcomes",
    "queue_wait",
    "raw_samples",
    "refusals_by_source",
    "reject_reasons",
    "rounds_over_time",
    "runs_and_bounds",
    "throughput_by_workers",
    "ticket_against_rerun",
    "time_to_target",
    "verdict_counts",
]
