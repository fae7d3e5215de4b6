"""Results of other tools as a frame of samples with declared columns: one adapter a file."""

from roundkit.analysis.importers.hyperfine import read_hyperfine
from roundkit.analysis.importers.pyperf import read_pyperf
from roundkit.analysis.importers.samples import SAMPLES

__all__ = ["SAMPLES", "read_hyperfine", "read_pyperf"]
