"""How a trial runs: everything that decides it, apart from the checkout."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.host.confine import Limits
from roundkit.models.base import Digest, Record, is_missing
from roundkit.models.campaign import Benchmark, Command, Metric
from roundkit.models.instruments import CountingTool
from roundkit.models.round_plan import FrozenRuntime, Gates


class RunSpec(Record):
    """Everything that decides how a trial runs, apart from which checkout it runs on.

    Attributes:
        round_digest: The frozen plan that these fields were copied from.
        protected_paths: Globs whose files come from the incumbent, whatever the candidate holds.
        hidden_paths: Globs whose files only the validator sees.
        repetitions: Timed runs within one trial.
        pin_cpus: Whether trials are pinned to the cores of their device set.
        counting_tool: What counts instructions, the same for all trials of a round; null where they do not
            decide, and then not in canonical bytes.
    """

    format: Literal["roundkit-run-spec/1"]
    round_digest: Digest
    metric: Metric
    benchmark: Benchmark
    validator: Command | None
    runtime: FrozenRuntime
    environment: dict[str, str]
    limits: Limits
    protected_paths: tuple[str, ...]
    hidden_paths: tuple[str, ...]
    gates: Gates
    repetitions: int
    pin_cpus: bool
    counting_tool: CountingTool | None = Field(default=None, exclude_if=is_missing)

    @property
    def forgeable(self) -> bool:
        """Whether the candidate can reach its figure: it reports, or valgrind counts in its own memory."""
        return self.benchmark.single_process or self.counting_tool == "valgrind"
