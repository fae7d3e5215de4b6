"""Why what a lane says about its agent is refused when a round is frozen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from roundkit.core.errors import Refusal, Refused
from roundkit.host.confine import Network
from roundkit.host.confine.gate import check_env
from roundkit.models.lane_agent import LaneAgent
from roundkit.rules.round_facts import RoundFacts

_PROXY_VARIABLES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"})
_OWN_VARIABLES = _PROXY_VARIABLES | {name.lower() for name in _PROXY_VARIABLES} | {"HOME", "TMPDIR"}


def agent_refusals(facts: RoundFacts) -> Iterator[Refusal]:
    """Yield every problem with the agents of a round's lanes."""
    for index, lane in enumerate(facts.draft.lanes):
        if lane.agent is not None:
            yield from _host_problems(facts, index, lane.agent)
            yield from _variable_problems(facts, index, lane.agent)
            yield from _credential_problems(facts, index, lane.agent)


def _host_problems(facts: RoundFacts, index: int, agent: LaneAgent) -> Iterator[Refusal]:
    for number, host in enumerate(agent.hosts):
        try:
            Network.proxy([host])
        except Refused as error:
            place = facts.round_at("lanes", index, "agent", "hosts", number)
            for refusal in error.refusals:
                remedy = refusal.remedy or "write `name`, `name:port` or `[address]:port`"
                yield Refusal(refusal.code, refusal.message, place, remedy)


def _variable_problems(facts: RoundFacts, index: int, agent: LaneAgent) -> Iterator[Refusal]:
    at = ("lanes", index, "agent")
    command = agent.command
    given = {*agent.environment, *((*command.environment, *command.state) if command is not None else ())}
    for name in sorted(set(agent.key_variables) & given):
        yield Refusal(
            "key-in-plan",
            f"{name} is a key, and the plan gives its value",
            facts.round_at(*at, *(("environment", name) if name in agent.environment else ())),
            "take the value out: it comes from the environment of `launch`, and a plan is published",
        )
    values = {**agent.environment, **(command.environment if command is not None else {})}
    for name, value in sorted(values.items()):
        try:
            check_env({name: value})
        except Refused as error:
            for refusal in error.refusals:
                remedy = refusal.remedy or "leave the null byte out"
                yield Refusal(refusal.code, refusal.message, facts.round_at(*at), remedy)
    for name in sorted(_OWN_VARIABLES & {*given, *agent.key_variables, *agent.pass_variables}):
        yield Refusal(
            "variable-reserved",
            f"{name} is set by the lane's boundary",
            facts.round_at(*at),
            "leave it out",
        )


def _credential_problems(facts: RoundFacts, index: int, agent: LaneAgent) -> Iterator[Refusal]:
    for number, credential in enumerate(agent.credentials):
        at = PurePosixPath(credential.at)
        if at.is_absolute() or ".." in at.parts or not at.parts:
            yield Refusal(
                "credential-place",
                f"{credential.at!r} is no file below the agent's home",
                facts.round_at("lanes", index, "agent", "credentials", number, "at"),
                "give a path relative to its home, e.g. `.codex/auth.json`",
            )
