"""Render the SwarmFlow script of a round: one worker a lane, everything that varies as a literal."""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from roundkit.agents.swarmflow.lint import lint_script
from roundkit.core.errors import Refusal, Refused
from roundkit.core.resources import shipped
from roundkit.models.lane import LaunchManifest

TRIES = 3
"""How often the engine (openjiuwen 0.1.19) runs a worker that fails or times out, the first time included."""

WAIT_S = 240
"""The largest ``status --wait`` in a worker's prompt: agent-core ends one command after 300 seconds."""

_WIDTH = 110


@dataclass(frozen=True)
class WorkerLane:
    """One lane, as its worker is told of it.

    Attributes:
        id: The lane.
        clone: Absolute path of its clone.
        prompt: The lane prompt and what the worker reports.
        timeout_s: Seconds of one try.
        model: The worker's model; null leaves it to the team.
        tokens: What the lane may use in all, in tokens; null is uncapped.
    """

    id: str
    clone: str
    prompt: str
    timeout_s: int
    model: str | None
    tokens: int | None


def render_script(
    manifest: LaunchManifest, lanes: Sequence[WorkerLane], *, template: str = "swarmflow.py.j2"
) -> str:
    """Return the script of a round, linted.

    Args:
        manifest: The round's ``launch.json``, whose text the script later takes as its ``args``.
        lanes: The lanes that it fills.
        template: File name of the template.

    Raises:
        Refused: ``swarmflow-lint``, once for each thing that the script must not hold.
    """
    loader = FileSystemLoader(shipped("templates"))
    environment = Environment(  # noqa: S701 - no HTML
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True
    )
    source = environment.get_template(template).render(
        round_id=manifest.round_id,
        round_digest=repr(manifest.round_digest),
        meta=_literal(_meta(manifest, lanes)),
        lanes=lanes,
        lanes_literal=_literal([_lane(lane) for lane in lanes]),
        tries=TRIES,
    )
    problems = lint_script(source)
    if problems:
        remedy = f"correct templates/{template}"
        raise Refused(Refusal("swarmflow-lint", str(problem), template, remedy) for problem in problems)
    return source


def worker_prompt(lane: str, clone: str, lane_prompt: str) -> str:
    """Return what a worker is told: the lane prompt, where it works, and what it reports."""
    return (
        f"{lane_prompt.rstrip()}\n\n## Your report\n\n"
        f"Your clone is `{clone}`. Start every command there (`cd {clone} && …`): your shell may start "
        f'elsewhere.\nWhen you stop, report `lane` ("{lane}"), `tickets` (every ticket that `submit` gave '
        "you) and `notes` (a few lines).\n"
    )


def _meta(manifest: LaunchManifest, lanes: Sequence[WorkerLane]) -> dict[str, Any]:
    names = ", ".join(lane.id for lane in lanes)
    meta: dict[str, Any] = {
        "name": f"roundkit-{manifest.round_id}",
        "description": f"Lanes {names} of round {manifest.round_id}, one worker each.",
        "phases": ["lanes"],
    }
    tokens = [lane.tokens for lane in lanes if lane.tokens is not None]
    if len(tokens) == len(lanes):
        meta["workflow_token_limit"] = sum(tokens)
    return meta


def _lane(lane: WorkerLane) -> dict[str, Any]:
    options: dict[str, Any] = {"timeout": lane.timeout_s}
    if lane.model is not None:
        options["model"] = lane.model
    return {"id": lane.id, "clone": lane.clone, "options": options, "prompt": lane.prompt}


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=_WIDTH, sort_dicts=False)
