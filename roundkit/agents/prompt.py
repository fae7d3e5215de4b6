"""The lane prompt: the same words for every agent, with what its harness allows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from roundkit.core.clock import format_utc
from roundkit.core.resources import shipped
from roundkit.models.round_plan import FrozenLane, LaneBudget

_TEMPLATE = "lane-prompt.md.j2"
_NAMES = {
    "turns": "Turns",
    "tokens": "Tokens",
    "micro_usd": "Cost in millionths of a US dollar",
    "wall_s": "Wall-clock seconds",
}


def lane_prompt(
    lane: FrozenLane,
    *,
    clone: Path,
    protected_paths: Sequence[str],
    wait_s: int,
    caps: LaneBudget,
    deadline_utc: datetime,
) -> str:
    """Return the prompt of a lane's agent.

    Args:
        lane: The lane.
        clone: Its clone.
        protected_paths: What nobody may change.
        wait_s: The longest that one call of the wrapper may wait, in seconds.
        caps: What the attempt may use.
        deadline_utc: When the agent is killed.
    """
    environment = Environment(
        loader=FileSystemLoader(shipped("templates")),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - Markdown for a model
    )
    budget = {_NAMES[name]: amount for name, amount in caps}
    return environment.get_template(_TEMPLATE).render(
        lane={**lane.to_json_value(), "clone": str(clone)},
        protected_paths=protected_paths,
        wait_s=wait_s,
        submission_cap=lane.submission_cap,
        deadline_utc=format_utc(deadline_utc),
        budget=budget,
    )
