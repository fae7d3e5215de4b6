"""Every column of the frames of a wave campaign: dtype, unit and meaning."""

from __future__ import annotations

import polars as pl

from roundkit.analysis.columns import Column

_TEXT = pl.String()
_TIME = pl.Datetime("us", "UTC")
_INT = pl.Int64()
_FLOAT = pl.Float64()

_WAVE = (
    Column("campaign", _TEXT, "", "campaign id"),
    Column("tag", _TEXT, "", "the wave: its number from 0001, in the order of the draws"),
)

WAVE_TABLES: dict[str, tuple[Column, ...]] = {
    "waves": (
        *_WAVE,
        Column("mode", _TEXT, "", "wave; gate-only for drafts that came later; parked"),
        Column("provenance", _TEXT, "", "what drafted: model, stub or scripted"),
        Column("began_utc", _TIME, "", "when its first shard started; null for one not handed on"),
        Column("gated_utc", _TIME, "", "when its row was written"),
        Column("wall_s", _FLOAT, "s", "from the one to the other"),
        Column("gate_s", _FLOAT, "s", "of the gate's steps alone, those that a killed gater began left out"),
        Column("workers", _INT, "", "draft agents that might run at once"),
        Column("band", _TEXT, "", "size class of its targets"),
        Column("lever_set", _TEXT, "", "way of prompting"),
        Column("targets", _INT, "", "targets that were drawn"),
        Column("drafts", _INT, "", "drafts that were found"),
        Column("unresolved", _INT, "", "of them, those without exactly one owner"),
        Column("agreed", _INT, "", "of them, those that the prefilter agreed with"),
        Column("gated", _INT, "", "of them, those that came before the gate"),
        Column("banked", _INT, "", "of them, those that were banked"),
        Column("commit", _TEXT, "", "the commit that holds them; null where nothing was banked"),
        Column("harvest", _TEXT, "", "done, failed or none"),
        Column("requests", _INT, "", "requests of its agents; null where nobody counted"),
        Column("per_minute", _FLOAT, "1/min", "requests a minute; null over less than a minute"),
        Column("platform_429", _INT, "", "429s of our own account"),
        Column("provider_429", _INT, "", "429s of the pools behind it"),
        Column("longest_429_minutes", _INT, "min", "longest run of minutes with a provider's 429"),
        Column("truncated", _INT, "", "answers that were cut off at their limit"),
        Column("memory_available_bytes", _INT, "byte", "when it was handed on; null where not told"),
        Column("swap_used_bytes", _INT, "byte", "when it was handed on; null where not told"),
        Column("decision", _TEXT, "", "why the next wave's workers are as they are; null before"),
        Column("next_workers", _INT, "", "workers of the next wave; null before it is decided"),
        Column("credit_usd", _FLOAT, "USD", "credit that was left; null where nobody told"),
        Column("missing", _TEXT, "", "why there are no requests a minute; null where there are"),
    ),
    "wave_minutes": (
        *_WAVE,
        Column("minute_utc", _TIME, "", "begin of the minute"),
        Column("model", _TEXT, "", "the model, as its provider names it; null for scripts"),
        Column("posts", _INT, "", "requests"),
        Column("answers", _INT, "", "answers"),
        Column("platform_429", _INT, "", "429s of our own account"),
        Column("provider_429", _INT, "", "429s of the pool behind it"),
        Column("tokens", _INT, "", "output tokens; null where no answer told"),
        Column("truncated", _INT, "", "answers that were cut off at their limit"),
    ),
    "wave_rejects": (
        *_WAVE,
        Column("at_utc", _TIME, "", "when it was noted"),
        Column("stage", _TEXT, "", "owner, prefilter, score, gate or parked"),
        Column("kind", _TEXT, "", "the reason in few words, as charts count it"),
        Column("group", _TEXT, "", "its target's group; null where it has no owner"),
        Column("name", _TEXT, "", "its target's name; null where it has no owner"),
        Column("path", _TEXT, "", "the draft, within its wave's folder; untrusted text"),
        Column("sha256", _TEXT, "", "its digest; null where it could not be read"),
        Column("reason", _TEXT, "", "why it did not bank; untrusted text"),
    ),
    "wave_shards": (
        *_WAVE,
        Column("shard", _INT, "", "its place in the order of the starts, from 0"),
        Column("pool", _TEXT, "", "the pool that its agent belongs to"),
        Column("model", _TEXT, "", "the pool's model; null for scripts"),
        Column("attempt", _INT, "", "which of the independent drafts, from 1"),
        Column("targets", _INT, "", "targets of its slice"),
        Column("started_utc", _TIME, "", "when its agent started"),
        Column("ended_utc", _TIME, "", "when it ended; null while it runs"),
        Column("end_reason", _TEXT, "", "why it ended; null while it runs"),
        Column("turns", _INT, "", "answers that it had; null where it told of no request"),
        Column("truncated_turns", _INT, "", "of them, those that were cut off"),
        Column("tokens", _INT, "", "output tokens; null where nobody counted"),
        Column("micro_usd", _INT, "µUSD", "what it cost; null where nobody counted"),
    ),
}
"""The columns of each frame, in order."""

WAVE_ROWS_OF = {
    "waves": "one row a finished wave, or a later gate of one",
    "wave_minutes": "one row a minute of a wave and model",
    "wave_rejects": "one row a draft that did not bank",
    "wave_shards": "one row a draft agent's slice of a wave",
}
"""What a row of each frame is."""
