"""Charts: each a function from frames to an Altair chart with a title, a description and its own rows.

A chart holds its data as one inline list of rows, rounded to what is shown; a table of the same rows stands
beside it in every report. Colours are those of Okabe and Ito; shape or text says the same without colour.
"""

from roundkit.analysis.charts.budgets import budget_burn
from roundkit.analysis.charts.comparison import pair_gains
from roundkit.analysis.charts.composition import composition_chain, interaction_ratios, ticket_against_rerun
from roundkit.analysis.charts.machine import aa_history, device_timeline, queue_wait
from roundkit.analysis.charts.tickets import gains, raw_samples

__all__ = [
    "aa_history",
    "budget_burn",
    "composition_chain",
    "device_timeline",
    "gains",
    "interaction_ratios",
    "pair_gains",
    "queue_wait",
    "raw_samples",
    "ticket_against_rerun",
]
