"""Every column of the frames of paired pilots."""

from __future__ import annotations

import polars as pl

from roundkit.analysis.columns import Column

_TEXT, _INT, _BOOL, _TIME = pl.String(), pl.Int64(), pl.Boolean(), pl.Datetime("us", "UTC")
_PILOT = (
    Column("campaign", _TEXT, "", "campaign id"),
    Column("pilot", _TEXT, "", "pilot id"),
)
_TUPLE = (
    *_PILOT,
    Column("tuple", _TEXT, "", "the tuple: task, variant and repetition"),
    Column("task", _TEXT, "", "task id"),
    Column("variant", _TEXT, "", "variant id"),
    Column("repetition", _INT, "", "repetition, from 1"),
)

PILOT_TABLES: dict[str, tuple[Column, ...]] = {
    "pilot_tuples": (
        *_TUPLE,
        Column("order", _INT, "", "place in the frozen order, from 1"),
        Column("state", _TEXT, "", "recorded; unfinished: started without a record; missing: never started"),
        Column("process", _TEXT, "", "completed, timeout, error or aborted; null without a record"),
        Column("process_word", _TEXT, "", "the same in the source's own word"),
        Column("detail", _TEXT, "", "one line more about its end; untrusted text"),
        Column("acceptance", _TEXT, "", "passed, failed or unavailable; null where nothing was checked"),
        Column("checks_passed", _INT, "", "checks that passed"),
        Column("checks_failed", _INT, "", "checks that failed"),
        Column("checks_unavailable", _INT, "", "checks that could not be made"),
        Column("calls", _INT, "", "tool calls; null without a record"),
        Column("failed_calls", _INT, "", "calls that failed; null without a record"),
        Column("wall_ms", _INT, "ms", "host time of the agent; null where unknown"),
        Column("validation_ms", _INT, "ms", "host time of the checks; null where not measured"),
        Column("tokens_input", _INT, "", "tokens read outside of any cache; null is unknown"),
        Column("tokens_cached_input", _INT, "", "tokens read from a cache; null is unknown"),
        Column("tokens_cache_write", _INT, "", "tokens written into a cache; null is unknown"),
        Column("tokens_output", _INT, "", "tokens written, reasoning among them; null is unknown"),
        Column("tokens_reasoning", _INT, "", "of them for reasoning; null is unknown"),
        Column("tokens_partial", _BOOL, "", "whether usage in flight is unknown"),
        Column("micro_usd", _INT, "µUSD", "what it cost; null where nobody counted"),
        Column("presented_bytes", _INT, "bytes", "prompt and answers that were presented; null: ineligible"),
        Column("active_ms", _INT, "ms", "blinded active review time; null: ineligible"),
        Column("recovery", _TEXT, "", "what became of the drift; null: ineligible"),
        Column("interventions", _INT, "", "entries of its ledger; null: ineligible"),
        Column("eligible", _BOOL, "", "whether it may enter comparative figures"),
        Column("missing", _TEXT, "", "why it is ineligible; null where it is eligible"),
        Column("provenance", _TEXT, "", "what played the agent"),
        Column("published", _BOOL, "", "whether others ran it and published its figures"),
    ),
    "pilot_checks": (
        *_TUPLE,
        Column("check", _TEXT, "", "check id"),
        Column("outcome", _TEXT, "", "passed, failed or unavailable"),
        Column("reason", _TEXT, "", "why it is unavailable; null otherwise; untrusted text"),
    ),
    "pilot_calls": (
        *_TUPLE,
        Column("sequence", _INT, "", "order of decision, from 1"),
        Column("tool", _TEXT, "", "read, write, delete, list, or a program; untrusted text"),
        Column("path", _TEXT, "", "the path that it is about; untrusted text"),
        Column("code", _TEXT, "", "the gateway's code: ok, stale, missing, refused, malformed or program"),
        Column("exit_code", _INT, "", "exit code as the agent saw it; null where a program was ended"),
        Column("wall_ms", _INT, "ms", "host time of the call"),
    ),
    "pilot_eligibility": (
        *_TUPLE,
        Column("item", _TEXT, "", "presentation, review, recovery or interventions"),
        Column("measured", _BOOL, "", "whether it is there"),
        Column("reason_code", _TEXT, "", "why it is not, in a word; null where it is"),
        Column("reason", _TEXT, "", "why it is not, in a sentence; null where it is"),
    ),
    "pilot_reviews": (
        *_TUPLE,
        Column("method", _TEXT, "", "timed between host clocks, or stated by a person and never eligible"),
        Column("reviewer", _TEXT, "", "the reviewer's id"),
        Column("blinded", _BOOL, "", "the reviewer's word that nothing told which variant it was"),
        Column("judgement", _TEXT, "", "accept, reject or unsure"),
        Column("active_ms", _INT, "ms", "active time; null where the clocks do not give it"),
        Column("missing", _TEXT, "", "why the clocks do not give it; null where they do"),
        Column("finished_utc", _TIME, "", "when it ended"),
    ),
    "pilot_findings": (
        *_PILOT,
        Column("rank", _INT, "", "from 1"),
        Column("failure_class", _TEXT, "", "one of the closed list of classes"),
        Column("cause", _TEXT, "", "a stable code; authored by a person, or published"),
        Column("tuples", _INT, "", "tuples that show it"),
        Column("tuple", _TEXT, "", "the tuple that is cited; null where the source names none"),
        Column("artifact", _TEXT, "", "the file that is cited, relative to the pilot's folder"),
        Column("sha256", _TEXT, "", "its digest"),
        Column("sentence", _TEXT, "", "what went wrong; may quote untrusted text"),
        Column("reproduction", _TEXT, "", "the command that shows it again"),
        Column("maps_to", _TEXT, "", "the issue or follow-up that it leads to"),
    ),
}

PILOT_ROWS_OF: dict[str, str] = {
    "pilot_tuples": "one row an expected tuple of a paired pilot, whatever came of it",
    "pilot_checks": "one row a check of a tuple's candidate",
    "pilot_calls": "one row a call of a tuple's agent",
    "pilot_eligibility": "one row an eligibility item of a tuple",
    "pilot_reviews": "one row a review of a tuple's candidate",
    "pilot_findings": "one row a finding, ranked",
}
"""What a row of each frame is."""
