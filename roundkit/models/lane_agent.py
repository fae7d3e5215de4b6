"""What a lane says about its agent: program, hosts, keys by name, and who allowed it to spend money."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from roundkit.core.canonical import LARGEST_INTEGER
from roundkit.host.confine import Limits
from roundkit.models.agent_run import TokenCounts
from roundkit.models.base import Count, Record, UtcTime
from roundkit.models.lane_command import CommandTemplate, VariableName

AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00]*$")]
_MILLION = 1_000_000


def _is_none(value: object) -> bool:
    return value is None


AgentProvenance = Literal["model", "stub", "scripted"]


class CredentialFile(Record):
    """A file of the owner's that an agent may read.

    Attributes:
        source: Absolute path on the host.
        at: Where the agent finds it, relative to its home.
    """

    source: AbsolutePath
    at: str


class ListPrice(Record):
    """What a model's tokens cost by its provider's list, in micro-USD a million tokens of each class.

    Used where a command-line tool counts tokens and no dollars.

    Attributes:
        input: Tokens read outside of any cache.
        cached_input: Tokens read from a cache.
        cache_write: Tokens written into a cache.
        output: Tokens written.
    """

    input: Count
    cached_input: Count
    cache_write: Count
    output: Count

    def micro_usd(self, tokens: TokenCounts) -> int | None:
        """Return what tokens cost, in micro-USD, rounded up; null when none were counted.

        At most what JSON holds exactly, whatever a tool claims to have counted.
        """
        counted = [(getattr(tokens, name), getattr(self, name)) for name in TokenCounts.model_fields]
        known = [amount * price for amount, price in counted if amount is not None]
        return min(-(-sum(known) // _MILLION), LARGEST_INTEGER) if known else None


class LaneAgent(Record):
    """How a lane's agent is started.

    Attributes:
        provenance: ``model`` where a model answers; ``stub`` and ``scripted`` where a program plays one.
        executable: Absolute path of the agent's program; null looks its usual name up on the PATH.
        hosts: ``host:port`` pairs that it reaches through the proxy; 443 unless a port is given.
        key_variables: Names of variables that hold keys. Their values come from the environment of
            ``launch``, and are in no plan, record or log.
        credentials: Files that it may read.
        pass_variables: Names of further variables that it inherits from ``launch``, with their values.
        environment: Variables with their values.
        readable: More absolute folders that it needs to read, such as its program's libraries.
        effort: Reasoning effort, as its command-line tool names it; null leaves it to the tool.
        allowed_tools: More permissions in the tool's own form, e.g. ``Bash(make test)``.
        wait_s: The longest `status --wait` that its prompt allows, in seconds; null: what its harness allows.
        limits: What it and all that it starts may use; null: what the campaign allows a candidate.
        prices: List prices, where the tool reports no dollars; null leaves the cost unknown.
        preset: For the harness ``command``: whose template ``prepare`` freezes as ``command``.
        command: For the harness ``command``: what is started.
    """

    provenance: AgentProvenance = "model"
    executable: AbsolutePath | None = None
    hosts: tuple[str, ...] = ()
    key_variables: tuple[VariableName, ...] = ()
    credentials: tuple[CredentialFile, ...] = ()
    pass_variables: tuple[VariableName, ...] = ()
    environment: dict[VariableName, str] = Field(default_factory=dict)
    readable: tuple[AbsolutePath, ...] = ()
    effort: str | None = None
    allowed_tools: tuple[str, ...] = ()
    wait_s: Annotated[int, Field(ge=1)] | None = None
    limits: Limits | None = None
    prices: ListPrice | None = None
    preset: str | None = Field(default=None, exclude_if=_is_none)
    command: CommandTemplate | None = Field(default=None, exclude_if=_is_none)


class Authorization(Record):
    """Who allows the agents of a round to spend money.

    Attributes:
        by: The person.
        micro_usd: What all attempts of the round may cost together, at their worst, in micro-USD.
        until_utc: When it ends; nothing starts from that moment on, and what runs is killed.
        models: The models that may be used, as the lanes name them.
    """

    by: Annotated[str, Field(min_length=1)]
    micro_usd: Count
    until_utc: UtcTime
    models: Annotated[tuple[str, ...], Field(min_length=1)]
