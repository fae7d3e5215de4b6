"""Every column of every frame: dtype, unit and meaning, declared once."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING

_TEXT = pl.String()
_TIME = pl.Datetime("us", "UTC")
_INT = pl.Int64()
_FLOAT = pl.Float64()
_BOOL = pl.Boolean()


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: Its name in the frame.
        dtype: Its polars type.
        unit: Unit of its values; empty for text, truth values and plain counts.
        meaning: What it says, and when it is null.
    """

    name: str
    dtype: pl.DataType
    unit: str
    meaning: str


_ROUND = (
    Column("campaign", _TEXT, "", "campaign id"),
    Column("round", _TEXT, "", "round id"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "rounds": (
        *_ROUND,
        Column("source", _TEXT, "", "name of the folder or file, without the path that leads to it"),
        Column("state", _TEXT, "", "closed; open or closing in a round directory; imported"),
        Column("paused", _TEXT, "", "why the queue is paused; null when it is not, or the round is closed"),
        Column("round_digest", _TEXT, "", "SHA-256 of the frozen plan; null for what was imported"),
        Column("evidence_digest", _TEXT, "", "SHA-256 of the evidence index; null before there is one"),
        Column("previous", _TEXT, "", "evidence digest of the round before; null for the first"),
        Column("incumbent", _TEXT, "", "commit I0"),
        Column("head", _TEXT, "", "commit that the round ends with; null before"),
        Column("advanced", _BOOL, "", "whether there is a new incumbent; null before it is decided"),
        Column("opened_utc", _TIME, "", "when the plan was frozen"),
        Column("closed_utc", _TIME, "", "when the round was closed; null before"),
        Column("lanes", _INT, "", "number of lanes"),
        Column("tickets", _INT, "", "number of tickets, rejected ones included"),
        Column("rejected", _INT, "", "rejected tickets and submissions"),
        Column("metric", _TEXT, "", "name of the metric that decides"),
        Column("unit", _TEXT, "", "its unit"),
        Column("direction", _TEXT, "", "which way is better: lower or higher"),
        Column("instrument", _TEXT, "", f"what is measured; {INSTRUCTIONS_SAY_NOTHING}"),
        Column("forgeable", _BOOL, "", "whether the candidate can reach its own figure"),
        Column("min_gain", _FLOAT, "fraction", "the rollback line"),
        Column("sigma_min", _FLOAT, "sigma", "evidence that a verdict needs"),
        Column("pairs", _INT, "", "pairs of one experiment"),
        Column(
            "ticket_gain", _FLOAT, "fraction", "selected tickets of the rerun lanes, added up in the unit"
        ),
        Column("rerun_verdict", _TEXT, "", "verdict of the rerun that decided; null without one"),
        Column("rerun_gain", _FLOAT, "fraction", "gain that this rerun estimated, whatever its verdict"),
        Column("rerun_low", _FLOAT, "fraction", "lower end of its 95 % interval"),
        Column("rerun_high", _FLOAT, "fraction", "upper end of its 95 % interval"),
        Column("gain", _FLOAT, "fraction", "the round's gain: that of a passing rerun, else null"),
        Column("missing", _TEXT, "", "why there is no gain; null where there is one"),
        Column("provenance", _TEXT, "", "what produced the tickets, comma-separated"),
    ),
    "lanes": (
        *_ROUND,
        Column("lane", _TEXT, "", "lane id"),
        Column("entry", _TEXT, "", "search plan entry"),
        Column("plane", _TEXT, "", "the one kind of change it makes"),
        Column("target_stage", _TEXT, "", "stage of the program that it attacks"),
        Column("hypothesis", _TEXT, "", "what it expects; untrusted text"),
        Column("harness", _TEXT, "", "what fills the lane"),
        Column("model", _TEXT, "", "the agent's model; null without one"),
        Column("deadline_utc", _TIME, "", "when its intake ends"),
        Column("tickets", _INT, "", "number of its tickets"),
        Column("selected", _TEXT, "", "its ticket in the composition; null when none passed"),
        Column("ticket_gain", _FLOAT, "fraction", "that ticket's estimate, biased upward by selection"),
        Column(
            "outcome",
            _TEXT,
            "",
            "composed, skipped, rerun-failed, no-result, no-passing-ticket; null before",
        ),
        Column("entry_status", _TEXT, "", "what became of the entry; null before"),
        Column("attempts", _INT, "", "attempts of its agent"),
        Column("cost_micro_usd", _INT, "µUSD", "what they cost; null when nobody counted"),
        Column("sentence", _TEXT, "", "the outcome in words"),
    ),
    "attempts": (
        *_ROUND,
        Column("lane", _TEXT, "", "lane id"),
        Column("ordinal", _INT, "", "number of the attempt within its lane, from 1"),
        Column("run_id", _TEXT, "", "workflow run that asked for it, and the ordinal"),
        Column("plan_digest", _TEXT, "", "identity of the attempt"),
        Column("phase", _TEXT, "", "reserved, claimed, settled or cancelled"),
        Column("provenance", _TEXT, "", "what fills the lane"),
        Column("reserved_utc", _TIME, "", "when it was reserved"),
        Column("claimed_utc", _TIME, "", "when somebody took it up; null when nobody did"),
        Column("ended_utc", _TIME, "", "when it was settled or cancelled; null before"),
        Column("end_reason", _TEXT, "", "why its agent ended; null where none ran"),
        Column("cli_version", _TEXT, "", "version of its agent's tool; untrusted text"),
        Column("model_reported", _TEXT, "", "its model, as the tool reports it; untrusted text"),
        Column("usd_basis", _TEXT, "", "reported, list-price or none"),
        Column("tokens_input", _INT, "", "tokens read outside of any cache; null where nobody counted"),
        Column("tokens_cached_input", _INT, "", "tokens read from a cache; null where nobody counted"),
        Column("tokens_cache_write", _INT, "", "tokens written into a cache; null where nobody counted"),
        Column("tokens_output", _INT, "", "tokens written; null where nobody counted"),
        Column("missing", _TEXT, "", "why its cost is not known; null where it is"),
        *(
            Column(f"{kind}_{name}", _INT, unit, meaning)
            for kind, meaning in (
                ("cap", "what all attempts of the lane may use; null without a cap"),
                ("charged", "what this attempt is charged, its worst case; null without a cap"),
                ("actual", "what it used; null where nobody counted"),
            )
            for name, unit in (("turns", ""), ("tokens", ""), ("micro_usd", "µUSD"), ("wall_s", "s"))
        ),
    ),
    "tickets": (
        *_ROUND,
        Column("lane", _TEXT, "", "lane id"),
        Column("ticket", _TEXT, "", "ticket name"),
        Column("sequence", _INT, "", "order of intake within the round"),
        Column("state", _TEXT, "", "queued, measuring, measured or rejected"),
        Column("verdict", _TEXT, "", "pass, fail, not-measured or invalid; null when rejected"),
        Column("reason", _TEXT, "", "code of the rule that decided, or of the rejection"),
        Column("sentence", _TEXT, "", "the verdict in words, or the rejection's detail; untrusted text"),
        Column("gain", _FLOAT, "fraction", "estimated gain; null when nothing was estimated"),
        Column("low", _FLOAT, "fraction", "lower end of its 95 % interval"),
        Column("high", _FLOAT, "fraction", "upper end of its 95 % interval"),
        Column("gain_unit", _FLOAT, "metric", "the gain in the metric's unit"),
        Column("missing", _TEXT, "", "why there is no gain; null where there is one"),
        Column("z", _FLOAT, "sigma", "evidence for a gain"),
        Column("z_required", _FLOAT, "sigma", "evidence that was required; null when nothing was estimated"),
        Column("pairs", _INT, "", "pairs behind it"),
        Column("stop", _TEXT, "", "why its experiment ended there; null where every pair was measured"),
        Column("smallest_detectable_gain", _FLOAT, "fraction", "what these pairs show with 80 % power"),
        Column("baseline_median", _FLOAT, "metric", "median of the baseline"),
        Column("candidate_median", _FLOAT, "metric", "median of the candidate"),
        Column("order_effect", _FLOAT, "log ratio", "estimated effect of running second"),
        Column("selected", _BOOL, "", "whether it stands for its lane in the composition; null before"),
        Column("files", _INT, "", "paths in its manifest"),
        Column("intake_utc", _TIME, "", "when the coordinator took it in"),
        Column("measured_utc", _TIME, "", "when it had its verdict; null when rejected"),
        Column("candidate_commit", _TEXT, "", "its commit; null when it was rejected before"),
        Column("provenance", _TEXT, "", "what produced it; null for what was imported"),
    ),
    "trials": (
        *_ROUND,
        Column("experiment", _TEXT, "", "experiment id"),
        Column("purpose", _TEXT, "", "ticket, aa, compose, rerun, fallback or standalone; imported"),
        Column("subject", _TEXT, "", "ticket or step that the experiment is for"),
        Column("lane", _TEXT, "", "lane id; null for checks and reruns"),
        Column("position", _INT, "", "place in time within the experiment, from 0"),
        Column("pair", _INT, "", "pair, from 0; null for a warm-up"),
        Column("side", _TEXT, "", "baseline or candidate; null for what was imported"),
        Column("order", _TEXT, "", "AB when the baseline goes first in this pair"),
        Column("seed", _INT, "", "seed of the benchmark's inputs"),
        Column("value", _FLOAT, "metric", "median of the samples; null when the trial has a problem"),
        Column("samples", pl.List(pl.Float64()), "metric", "raw repetitions of the deciding metric"),
        Column("problem", _TEXT, "", "what was wrong with the trial; null when valid"),
        Column("detail", _TEXT, "", "one line about the problem; untrusted text"),
        Column("started_utc", _TIME, "", "when it began"),
        Column("ended_utc", _TIME, "", "when it ended"),
        Column("wall_s", _FLOAT, "s", "coordinator's wall clock; null without a reading"),
        Column("cpu_s", _FLOAT, "s", "CPU time; null without a reading"),
        Column("peak_memory_bytes", _INT, "bytes", "peak memory; null without a reading"),
    ),
    "compositions": (
        *_ROUND,
        Column("kind", _TEXT, "", "step, rerun or fallback"),
        Column("step", _INT, "", "number of the step; null for reruns"),
        Column("lane", _TEXT, "", "lane that is laid on the head; null for reruns"),
        Column("ticket", _TEXT, "", "its ticket; null for reruns"),
        Column("experiment", _TEXT, "", "experiment; null when a side could not be built"),
        Column("reused", _BOOL, "", "whether the ticket's own measurement was reused"),
        Column("kept", _BOOL, "", "whether the step stays, or the rerun passed"),
        Column("verdict", _TEXT, "", "verdict against the head before, or against I0"),
        Column("reason", _TEXT, "", "code of the rule that decided"),
        Column("gain", _FLOAT, "fraction", "estimated gain; null when nothing was estimated"),
        Column("low", _FLOAT, "fraction", "lower end of its 95 % interval"),
        Column("high", _FLOAT, "fraction", "upper end of its 95 % interval"),
        Column("ratio", _FLOAT, "ratio", "step gain over standalone gain; null when unmeasurable"),
        Column("ratio_low", _FLOAT, "ratio", "lower end of its 95 % interval"),
        Column("ratio_high", _FLOAT, "ratio", "upper end of its 95 % interval"),
        Column("ratio_basis", _TEXT, "", "fresh, reused-selected, by-construction or unmeasurable"),
    ),
    "devices": (
        *_ROUND,
        Column("device", _TEXT, "", "device"),
        Column("device_set", _TEXT, "", "set that was leased as a whole"),
        Column("experiment", _TEXT, "", "who held it"),
        Column("purpose", _TEXT, "", "what for"),
        Column("subject", _TEXT, "", "ticket or step that the experiment is for"),
        Column("lane", _TEXT, "", "lane id; null for checks and reruns"),
        Column("acquired_utc", _TIME, "", "start of the lease"),
        Column("released_utc", _TIME, "", "end of the lease"),
        Column("held_s", _FLOAT, "s", "how long"),
    ),
    "aa_checks": (
        *_ROUND,
        Column("number", _INT, "", "number of the check, from 1"),
        Column("experiment", _TEXT, "", "experiment"),
        Column("z", _FLOAT, "sigma", "evidence of a difference; null when nothing was measured"),
        Column("cusum", _FLOAT, "sigma", "drift statistic after this check; null without z"),
        Column("delta", _FLOAT, "log ratio", "difference seen; null when nothing was measured"),
        Column("standard_error", _FLOAT, "log ratio", "its standard error"),
        Column("passed", _BOOL, "", "whether the queue went on"),
        Column("reason", _TEXT, "", "what was exceeded, or why nothing was measured"),
        Column("resumes", _BOOL, "", "whether it was to end a pause; the drift statistic starts anew"),
        Column("limit", _FLOAT, "sigma", "the plan's limit of the drift statistic"),
        Column("single_limit", _FLOAT, "sigma", "the plan's limit of one check"),
    ),
    "events": (
        *_ROUND,
        Column("position", _INT, "", "order of writing, from 0"),
        Column("time_utc", _TIME, "", "when"),
        Column("kind", _TEXT, "", "what happened"),
        Column("fields", _TEXT, "", "what belongs to it, as canonical JSON; untrusted text"),
    ),
}


ROWS_OF: dict[str, str] = {
    "rounds": "one row a round, open ones included",
    "lanes": "one row a lane",
    "attempts": "one row an attempt of a lane's agent",
    "tickets": "one row a ticket, rejected ones included",
    "trials": "one row a trial, with its raw samples",
    "compositions": "one row a composition step or rerun",
    "devices": "one row a device and lease",
    "aa_checks": "one row an A/A check",
    "events": "one row an event",
}
"""What a row of each frame is."""


def schema_of(table: str) -> dict[str, pl.DataType]:
    """Return a table's columns and polars types, in order."""
    return {column.name: column.dtype for column in TABLES[table]}
