"""What ``prepare`` knows when it decides: both files, the incumbent's paths, time and cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from roundkit.core.globs import PathIndex
from roundkit.models.campaign import CampaignPlan
from roundkit.models.round_plan import RoundDraft
from roundkit.models.search_plan import SearchPlanEntry
from roundkit.rules.scope import protected_files

Place = Callable[..., str]
"""Names a place in a file from the keys and indices that lead to it."""


@dataclass(frozen=True)
class RoundFacts:
    """What the decisions are made from.

    Attributes:
        campaign: The campaign plan as written.
        draft: The round as written.
        now: When the round is to be frozen.
        paths: Files of the incumbent; null when the repository could not be read.
        protected: Globs that no lane may reach.
        cores: Numbers of the cores that this process may use.
        campaign_at: Names a place in the campaign file.
        round_at: Names a place in the round file.
    """

    campaign: CampaignPlan
    draft: RoundDraft
    now: datetime
    paths: PathIndex | None
    protected: tuple[str, ...]
    cores: frozenset[int]
    campaign_at: Place = field(repr=False)
    round_at: Place = field(repr=False)

    @cached_property
    def entries(self) -> dict[str, SearchPlanEntry]:
        """The search plan by entry id."""
        return {entry.id: entry for entry in self.campaign.search_plan}

    @cached_property
    def protected_paths(self) -> PathIndex:
        """The incumbent's files that no lane may reach; none when the repository could not be read."""
        return PathIndex(()) if self.paths is None else protected_files(self.protected, self.paths)
