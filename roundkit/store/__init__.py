"""Floor 3: the coordinator's database."""

from roundkit.store.database import RoundStore, open_store

__all__ = ["RoundStore", "open_store"]
