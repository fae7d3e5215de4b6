"""The drivers, one adapter a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from roundkit.agents.contract import Driver
from roundkit.agents.drivers.claude import Claude
from roundkit.agents.drivers.codex import Codex
from roundkit.models.round_plan import HarnessName

DRIVERS: Mapping[HarnessName, Driver] = MappingProxyType({"claude": Claude(), "codex": Codex()})
"""The driver of each harness that starts one agent a lane."""

__all__ = ["DRIVERS"]
