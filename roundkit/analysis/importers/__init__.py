"""Results of other tools in the declared frames: one adapter a file."""

from roundkit.analysis.importers.hyperfine import read_hyperfine
from roundkit.analysis.importers.jsonl import read_jsonl
from roundkit.analysis.importers.openevolve import read_openevolve
from roundkit.analysis.importers.pyperf import read_pyperf
from roundkit.analysis.importers.results_tsv import read_results_tsv
from roundkit.analysis.importers.samples import SAMPLES
from roundkit.analysis.importers.trials import as_trials

__all__ = [
    "SAMPLES",
    "as_trials",
    "read_hyperfine",
    "read_jsonl",
    "read_openevolve",
    "read_pyperf",
    "read_results_tsv",
]
