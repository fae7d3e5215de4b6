"""Floor 6: ledgers as data frames with declared columns, and charts of them."""

from roundkit.analysis import charts, importers
from roundkit.analysis.columns import TABLES, Column
from roundkit.analysis.door import check_frame
from roundkit.analysis.exported import read_frames, write_frames
from roundkit.analysis.ledgers import Ledgers, load
from roundkit.analysis.partitions import add_parts
from roundkit.analysis.pilots import PilotFrames, pilot_frames
from roundkit.analysis.places import Place, find_places, nearest
from roundkit.analysis.wave_columns import WAVE_TABLES
from roundkit.analysis.waves import WaveFrames, load_waves

__all__ = [
    "TABLES",
    "WAVE_TABLES",
    "Column",
    "Ledgers",
    "PilotFrames",
    "Place",
    "WaveFrames",
    "add_parts",
    "charts",
    "check_frame",
    "find_places",
    "importers",
    "load",
    "load_waves",
    "nearest",
    "pilot_frames",
    "read_frames",
    "write_frames",
]
