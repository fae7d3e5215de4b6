"""Two checkouts compared outside a round, and a benchmark's noise, by the machinery of a round."""

from roundkit.rounds.compare.instruments import METRICS, instruments
from roundkit.rounds.compare.measure import Announce, compare
from roundkit.rounds.compare.noise import measure_noise, noise_words
from roundkit.rounds.compare.options import CompareOptions
from roundkit.rounds.compare.saved import check_output, read_comparison

__all__ = [
    "METRICS",
    "Announce",
    "CompareOptions",
    "check_output",
    "compare",
    "instruments",
    "measure_noise",
    "noise_words",
    "read_comparison",
]
