"""What a record says that an agent used, against the archived stream that its tool told it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from roundkit.audit.pilot_material import PilotMaterial
from roundkit.core.canonical import digest_bytes
from roundkit.evidence import pilot_layout as layout
from roundkit.models.agent_run import AgentRun, Usage
from roundkit.models.lane_agent import LaneAgent, ListPrice
from roundkit.models.pilot_cohort import Observation
from roundkit.models.pilot_draft import PilotModel
from roundkit.models.round_plan import HarnessName

if TYPE_CHECKING:
    from roundkit.agents.archived_stream import StreamUsage

_BY_ITSELF = ("exited", "provider-error")


def whole_stream(material: PilotMaterial, row: Observation) -> bytes | None:
    """Return all that an agent printed; null where it was cut off, or is not what its record binds."""
    agent = row.agent
    if agent is None or row.folder is None or agent.stdout.kept_bytes != agent.stdout.bytes:
        return None
    data = material.reader.artifact(row.folder, layout.STDOUT).data
    return data if data is not None and digest_bytes(data) == agent.stdout.sha256 else None


def read_again(material: PilotMaterial) -> str:
    """Say of how many agents the usage is held against all that they printed."""
    if _reader() is None:
        return "no usage taken again, since nothing reads streams on this system"
    count = sum(whole_stream(material, row) is not None for row in material.cohort.observations)
    return f"usage of {count} taken again from all that they printed"


def _reader() -> Callable[[HarnessName, LaneAgent, bytes], StreamUsage | None] | None:
    """Return what reads streams: it needs what confines agents; null on a system that has nothing such."""
    try:
        from roundkit.agents.archived_stream import stream_usage
    except ImportError:
        return None
    return stream_usage


def usage_problems(model: PilotModel, agent: AgentRun, stream: bytes) -> Iterator[str]:
    """Yield how a record's usage is not what its agent's whole stream tells.

    Args:
        model: The plan's one model configuration.
        agent: The record of the run.
        stream: All that it printed.
    """
    reader = _reader()
    found = None if reader is None else reader(model.harness, model.agent, stream)
    if found is None:
        return
    said, told = agent.usage, found.usage
    yield from _price_problems(said, model.agent.prices)
    if found.is_all:
        told = told.model_copy(update={"partial": agent.end_reason not in _BY_ITSELF})
        for name in Usage.model_fields:
            if getattr(said, name) != getattr(told, name):
                yield _differs(name, getattr(said, name), getattr(told, name))
        return
    for name, (stands, least) in _amounts(said, told).items():
        if least is not None and (stands is None or stands < least):
            yield _differs(name, stands, f"at least {least}")
    if told.session_id is not None and said.session_id != told.session_id:
        yield _differs("session_id", said.session_id, told.session_id)
    if told.basis == "reported" and said.micro_usd != told.micro_usd:
        yield _differs("micro_usd", said.micro_usd, told.micro_usd)


def _price_problems(said: Usage, prices: ListPrice | None) -> Iterator[str]:
    if (said.basis == "none") != (said.micro_usd is None):
        yield f"its cost is {said.micro_usd}, and it comes from {said.basis}"
    if said.basis == "list-price":
        computed = None if prices is None else prices.micro_usd(said.tokens)
        if computed != said.micro_usd:
            yield f"its cost is {said.micro_usd} micro-USD, by the plan's list prices {computed}"


def _amounts(said: Usage, told: Usage) -> dict[str, tuple[int | None, int | None]]:
    counts = {"turns": (said.turns, told.turns)}
    for name in type(said.tokens).model_fields:
        counts[f"tokens.{name}"] = (getattr(said.tokens, name), getattr(told.tokens, name))
    return counts


def _differs(name: str, stands: object, told: object) -> str:
    return f"its usage's {name} is {stands}, its stream tells {told}"
