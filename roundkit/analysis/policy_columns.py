"""Every column of the frames of a policy pilot."""

from __future__ import annotations

import polars as pl

from roundkit.analysis.columns import Column

_TEXT, _INT, _FLOAT = pl.String(), pl.Int64(), pl.Float64()
_TIME = pl.Datetime("us", "UTC")

POLICY_TABLES: dict[str, tuple[Column, ...]] = {
    "policy_runs": (
        Column("campaign", _TEXT, "", "campaign id"),
        Column("pilot", _TEXT, "", "pilot id"),
        Column("run", _TEXT, "", "name of the run, e.g. P.2; its rounds are P2-r01 and on"),
        Column("arm", _TEXT, "", "P, several lanes a round, or S, one"),
        Column("repetition", _INT, "", "repetition, from 1"),
        Column("order", _INT, "", "place in the frozen order, from 1"),
        Column("process", _TEXT, "", "completed, error or aborted; null without a record"),
        Column(
            "state",
            _TEXT,
            "",
            "reached or censored; untimed where the host's clock was set; error or aborted where it broke; "
            "unfinished: started without a record; missing: never started",
        ),
        Column("end", _TEXT, "", "target, budget or nothing-planned; null for a run that broke"),
        Column("detail", _TEXT, "", "one line more about its end; untrusted text"),
        Column("started_utc", _TIME, "", "when its slot was used, by the host's clock"),
        Column("launched_utc", _TIME, "", "its first launch, by the host's clock; null without one"),
        Column("ended_utc", _TIME, "", "when its end was noted, by the host's clock; null without one"),
        Column(
            "time_s", _FLOAT, "s", "to the target, or until it was censored; null for a run without times"
        ),
        Column("target_s", _FLOAT, "s", "from the first launch to the target; null where not reached"),
        Column("wall_s", _FLOAT, "s", "from the first launch to the end of its last round; null if it broke"),
        Column(
            "final_gain", _FLOAT, "fraction", "of its last incumbent over its first one; null if it broke"
        ),
        Column("rounds", _INT, "", "rounds with evidence"),
        Column("experiments", _INT, "", "experiments of all rounds, complete or not"),
        Column("device_hours", _FLOAT, "h", "hours of leases, times the devices of each; null without times"),
        Column(
            "utilization", _FLOAT, "fraction", "share of its wall clock that device sets were leased; or null"
        ),
        Column("mean_wait_s", _FLOAT, "s", "mean wait of a ticket for a device; null without one"),
        Column("tokens", _INT, "", "by the counters of the agents' tools; null where one does not tell"),
        Column("usd", _FLOAT, "USD", "what its agents cost; null where one does not tell"),
        Column("charged_turns", _INT, "", "turns that its attempts were charged; null is uncapped"),
        Column("charged_tokens", _INT, "", "tokens that they were charged; null is uncapped"),
        Column("charged_micro_usd", _INT, "µUSD", "money that they were charged; null is uncapped"),
        Column("charged_wall_s", _INT, "s", "agents' time that they were charged; null is uncapped"),
        Column("lost", _INT, "", "lanes that passed alone and lost their gain in composition"),
        Column("rejected", _INT, "", "submissions that came to nothing"),
        Column("provenance", _TEXT, "", "what made its candidates, each once; null where nothing did"),
    ),
    "policy_curve": (
        Column("arm", _TEXT, "", "P or S"),
        Column("time_s", _FLOAT, "s", "since the first launch"),
        Column(
            "without_target_percent", _FLOAT, "%", "product-limit estimate of runs without the target by then"
        ),
        Column("event", _TEXT, "", "start, reached or censored"),
        Column("runs_left", _INT, "", "runs still observed after it"),
    ),
}
"""The columns of each frame, in order."""

POLICY_EXPORTED: dict[str, tuple[Column, ...]] = {"policy_runs": POLICY_TABLES["policy_runs"]}
"""Those that an export holds; the curve follows from the runs."""

POLICY_ROWS_OF: dict[str, str] = {
    "policy_runs": "one row a run of a policy pilot, those that were never started among them",
    "policy_curve": "one row a run's end on its arm's curve, and one an arm at time 0",
}
"""What a row of each frame is."""
