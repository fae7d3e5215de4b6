"""Floor 6: ledgers as data frames with declared columns, and charts of them."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from roundkit.analysis import importers
from roundkit.analysis.campaigns import export_places
from roundkit.analysis.columns import TABLES, Column
from roundkit.analysis.exported import read_frames, write_frames
from roundkit.analysis.frame_checks import check_frame
from roundkit.analysis.ledgers import Ledgers, load
from roundkit.analysis.partitions import add_parts
from roundkit.analysis.pilots import PilotFrames, pilot_frames
from roundkit.analysis.places import Place, find_places, nearest
from roundkit.analysis.policy import PolicyFrames, policy_frames
from roundkit.analysis.wave_columns import WAVE_TABLES
from roundkit.analysis.waves import WaveFrames, load_waves

if TYPE_CHECKING:
    from roundkit.analysis import charts

__all__ = [
    "TABLES",
    "WAVE_TABLES",
    "Column",
    "Ledgers",
    "PilotFrames",
    "Place",
    "PolicyFrames",
    "WaveFrames",
    "add_parts",
    "charts",
    "check_frame",
    "export_places",
    "find_places",
    "importers",
    "load",
    "load_waves",
    "nearest",
    "pilot_frames",
    "policy_frames",
    "read_frames",
    "write_frames",
]


def __getattr__(name: str) -> ModuleType:
    """Open the charts when somebody draws: their library takes seconds, and most commands draw nothing.

    Raises:
        AttributeError: there is no such name.
    """
    if name == "charts":
        return import_module("roundkit.analysis.charts")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
