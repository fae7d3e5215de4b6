"""How any other agent is started: its arguments, its prompt, its own folders, and where it counts usage."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from roundkit.models.base import Record

DottedPath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_$-]+(\.[A-Za-z0-9_$-]+)*$", max_length=200)
]
HomePath = Annotated[
    str,
    StringConstraints(
        pattern=r"^\.?[A-Za-z0-9_-][A-Za-z0-9._-]*(/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)*$", max_length=200
    ),
]


def _below_home(pattern: str) -> str:
    place = PurePosixPath(pattern)
    if place.is_absolute() or ".." in place.parts or not place.parts:
        raise ValueError("give `stdout`, or a glob below the agent's home")
    return pattern


HomeGlob = Annotated[str, AfterValidator(_below_home)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class UsageRule(Record):
    """Where an agent's rows of JSON, one a line, tell what it used. Paths are keys with dots between them.

    Attributes:
        take: ``none``: it tells nothing, so that its usage is unknown; ``last``: the last matching row holds
            the totals; ``sum``: each matching row holds one answer's usage.
        of: ``stdout``, or a glob below the agent's home for the files that hold the rows.
        rows: Which rows match: each path with the text that stands there; none: every row.
        input: Path of the tokens that the model read.
        cached_input: Path of those that came from a cache.
        cache_write: Path of those that went into one.
        output: Path of the tokens that the model wrote.
        reasoning: Path of those that it thought, where ``output`` leaves them out.
        input_has_cached: Whether ``input`` counts the cached ones too.
        usd: Path of dollars.
        turns: Path of the number of answers; null counts the rows where they are summed.
        session: Path of the session's name, in whatever row has it.
        model: Path of the model's name, in whatever row has it.
        failed: Which row says that the provider failed for good.
    """

    take: Literal["none", "last", "sum"] = "none"
    of: HomeGlob = "stdout"
    rows: dict[DottedPath, str] = Field(default_factory=dict)
    input: DottedPath | None = None
    cached_input: DottedPath | None = None
    cache_write: DottedPath | None = None
    output: DottedPath | None = None
    reasoning: DottedPath | None = None
    input_has_cached: bool = False
    usd: DottedPath | None = None
    turns: DottedPath | None = None
    session: DottedPath | None = None
    model: DottedPath | None = None
    failed: dict[DottedPath, str] = Field(default_factory=dict)


class CommandTemplate(Record):
    """What starts an agent that has no driver of its own.

    Attributes:
        argv: The arguments after the program, with ``{lane}``, ``{clone}``, ``{prompt_file}``,
            ``{mcp_config}``, ``{model}`` and ``{deadline_s}`` in them. An argument that is exactly
            ``{model}`` goes, with the one before it, where the lane names no model.
        program: File name of the program, looked up on the PATH where ``agent.executable`` is null.
        prompt: Whether the prompt goes to standard input, or lies in ``{prompt_file}``.
        environment: Variables with their values, the same placeholders in them.
        state: Variables that name a folder of the agent's own, each with its place below its home.
        version: Arguments that print its version; null where it has none.
        help: Arguments that print its flags; null where it has none.
        flags: Words that must stand in that help.
        submit_at_end: Whether its clone is submitted when it ends, for agents that cannot run the wrapper.
        git_writable: Whether it has to write into ``.git``.
        usage: Where it tells what it used.
    """

    argv: tuple[str, ...]
    program: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._+-]{1,100}$")]
    prompt: Literal["stdin", "file"] = "stdin"
    environment: dict[VariableName, str] = Field(default_factory=dict)
    state: dict[VariableName, HomePath] = Field(default_factory=dict)
    version: tuple[str, ...] | None = ("--version",)
    help: tuple[str, ...] | None = None
    flags: tuple[str, ...] = ()
    submit_at_end: bool = False
    git_writable: bool = False
    usage: UsageRule = UsageRule()
