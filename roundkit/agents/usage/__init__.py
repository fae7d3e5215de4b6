"""What an agent used, read from rows of JSON by a rule: pure, and never raising on what a row holds."""

from roundkit.agents.usage.rows import RowUsage

__all__ = ["RowUsage"]
