"""Floor 6: evidence as data frames with declared columns, and charts of them."""

from roundkit.analysis import charts
from roundkit.analysis.columns import TABLES, Column, check_frame
from roundkit.analysis.ledgers import Ledgers, load

__all__ = ["TABLES", "Column", "Ledgers", "charts", "check_frame", "load"]
