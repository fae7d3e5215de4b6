"""Floor 3: the coordinator's database."""

from roundkit.store.database import RoundStore, open_snapshot, open_store, store_exists

__all__ = ["RoundStore", "open_snapshot", "open_store", "store_exists"]
