"""The record of one agent's run: how it ended, and what its command-line tool counted."""

from __future__ import annotations

from typing import Literal

from roundkit.models.base import Count, Digest, Record, UtcTime

AgentEnd = Literal["exited", "deadline", "killed", "budget", "provider-error", "preflight"]
"""Why an agent ended: by itself; at its deadline; stopped by a person or a limit of its boundary; at a cap
of its budget; because its provider failed; or before it began, because the boundary could not be built."""

UsdBasis = Literal["reported", "list-price", "none"]
"""Whether dollars were reported by the tool, computed from the plan's list prices, or are unknown."""


class TokenCounts(Record):
    """Tokens by class, each counted once; null where nobody counted.

    Attributes:
        input: Read by the model, neither from nor into a cache.
        cached_input: Read from a cache.
        cache_write: Written into a cache.
        output: Written by the model, reasoning among them.
    """

    input: Count | None = None
    cached_input: Count | None = None
    cache_write: Count | None = None
    output: Count | None = None

    @property
    def total(self) -> int | None:
        """All classes added up, those that the tool does not know left out; null when it knows none."""
        known = [value for value in self.model_dump().values() if value is not None]
        return sum(known) if known else None


class Usage(Record):
    """What an agent used, from the counters of its command-line tool; null is unknown, never zero.

    Attributes:
        turns: Answers of the model.
        tokens: By class.
        micro_usd: Millionths of a US dollar.
        basis: Where the dollars come from.
        session_id: The tool's own name of the session.
        model: The model, as the tool reports it.
        partial: True where the last answers may be missing, because the agent was killed.
    """

    turns: Count | None = None
    tokens: TokenCounts = TokenCounts()
    micro_usd: Count | None = None
    basis: UsdBasis = "none"
    session_id: str | None = None
    model: str | None = None
    partial: bool = False


class LogDigest(Record):
    """One stream of an agent. What the store keeps of it is bounded in size, and keys are taken out.

    Attributes:
        sha256: Digest of the whole stream; of standard output after the keys were taken out.
        bytes: Its length.
        kept_bytes: How much of it the store holds.
    """

    sha256: Digest
    bytes: Count
    kept_bytes: Count

    @property
    def notice(self) -> str:
        """What stands in the file of standard output in the place of what is not kept; empty where all is."""
        left_out = self.bytes - self.kept_bytes
        return f"\n[… {left_out} bytes left out …]\n" if left_out > 0 else ""


class AgentRun(Record):
    """One run of a lane's agent.

    Attributes:
        argv_sha256: Digest of the canonical JSON of its arguments.
        cli_version: What its tool answered to the question for its version; null where it has none.
        started_utc: When it was started.
        ended_utc: When nothing of it was left.
        exit_code: Its exit code, null when it was ended.
        end_reason: Why it ended; an exit code alone decides nothing.
        detail: One line more about the end.
        usage: What it used.
        denied: Permissions that the tool refused it; null where the tool does not say.
        stdout: Its event stream.
        stderr: What else it said.
    """

    argv_sha256: Digest
    cli_version: str | None
    started_utc: UtcTime
    ended_utc: UtcTime
    exit_code: int | None
    end_reason: AgentEnd
    detail: str
    usage: Usage
    denied: Count | None
    stdout: LogDigest
    stderr: LogDigest
