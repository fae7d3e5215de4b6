"""Floor 6: ledgers as data frames with declared columns, and charts of them."""

from roundkit.analysis import charts, importers
from roundkit.analysis.columns import TABLES, Column, check_frame
from roundkit.analysis.exported import read_frames, write_frames
from roundkit.analysis.ledgers import Ledgers, load
from roundkit.analysis.partitions import add_parts
from roundkit.analysis.places import Place, find_places, nearest

__all__ = [
    "TABLES",
    "Column",
    "Ledgers",
    "Place",
    "add_parts",
    "charts",
    "check_frame",
    "find_places",
    "importers",
    "load",
    "nearest",
    "read_frames",
    "write_frames",
]
