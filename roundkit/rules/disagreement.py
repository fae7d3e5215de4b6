"""What a check finds: one place at which records do not agree with what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from roundkit.models.run_spec import RunSpec
from roundkit.models.verdict import VerdictRecord

_RELATIVE = 1e-9
"""Last digits that a logarithm may differ by between two machines; what is compared to a gate is rounded."""

_SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class Disagreement:
    """One place at which the records do not agree with themselves."""

    where: str
    detail: str


def differs(where: str, what: str, stands: object, computed: object) -> Disagreement:
    """Return a disagreement that shows what stands there and what was computed."""
    return Disagreement(where, f"{what} is {_short(stands)}, recomputed {_short(computed)}")


def compare_verdicts(where: str, stands: VerdictRecord, computed: VerdictRecord) -> Iterator[Disagreement]:
    """Yield each field in which two verdicts differ; floats beyond their last digits only."""
    ours = computed.to_json_value()
    for name, value in stands.to_json_value().items():
        if not _equal(value, ours[name]):
            yield differs(where, f"verdict.{name}", value, ours[name])


def compare_run_specs(where: str, stands: RunSpec, computed: RunSpec) -> Iterator[Disagreement]:
    """Yield each field in which a run specification is not the one that follows from its plan."""
    theirs, ours = stands.to_json_value(), computed.to_json_value()
    for name in sorted(theirs.keys() | ours.keys()):
        if theirs.get(name) != ours.get(name):
            yield differs(where, name, theirs.get(name), ours.get(name))


def _equal(stands: object, computed: object) -> bool:
    if isinstance(stands, float) and isinstance(computed, float):
        return math.isclose(stands, computed, rel_tol=_RELATIVE, abs_tol=1e-15)
    return stands == computed


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}…"
