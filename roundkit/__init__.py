"""roundkit: parallel optimization rounds whose every verdict can be recomputed."""

__version__ = "0.1.0"
