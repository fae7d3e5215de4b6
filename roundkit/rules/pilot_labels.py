"""Labels that a blinded packet must not show: who or what made a candidate, in whatever letter case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from roundkit.core.errors import Refusal
from roundkit.models.pilot_plan import PairedPlan

_SHOWN_LEAKS = 20


@dataclass(frozen=True)
class Leak:
    """One place of a packet that shows a label."""

    file: str
    line: int
    kind: str
    label: str


def labels_of(plan: PairedPlan) -> dict[str, str]:
    """Return every label of a plan that would tell a reviewer something, with what it is.

    The harness ``command`` is no label: it is a common word, and says only that something was started.
    """
    found: dict[str, str] = {}
    for frozen in plan.variants:
        found[frozen.variant.id] = "a variant"
        if frozen.variant.guide is not None:
            found.setdefault(PurePosixPath(frozen.variant.guide).name, "a variant's guide")
            found.setdefault(PurePosixPath(frozen.variant.guide).stem, "a variant's guide")
    if plan.model.model is not None:
        found.setdefault(plan.model.model, "the model")
    if plan.model.harness != "command":
        found.setdefault(plan.model.harness, "the harness")
    found.setdefault(plan.runner.machine, "the runner's machine")
    if plan.runner.revision is not None:
        found.setdefault(plan.runner.revision, "the runner's revision")
    for slot in plan.schedule:
        found.setdefault(slot.tuple_id, "a tuple")
    return {label: kind for label, kind in found.items() if label.strip()}


def leaks(files: Mapping[str, bytes], labels: Mapping[str, str]) -> Iterator[Leak]:
    """Yield every label that stands as a word of its own in a packet's file or in its name.

    Args:
        files: The packet's files by name.
        labels: Labels with what they are.
    """
    patterns = [(label, kind, _pattern(label)) for label, kind in labels.items()]
    for name, data in files.items():
        for number, line in enumerate((name.encode(), *data.splitlines())):
            for label, kind, pattern in patterns:
                if pattern.search(line):
                    yield Leak(name, number, kind, label)


def leak_refusals(found: list[Leak]) -> list[Refusal]:
    """Return leaks as refusals; line 0 is the file's name."""
    return [
        Refusal(
            "label-leak",
            f"{leak.kind}, {leak.label!r}, stands in what a reviewer would see",
            f"{leak.file} line {leak.line}",
            "this candidate cannot be reviewed blindly; name variants and guides so that no rubric, task or "
            "program holds their names",
        )
        for leak in found[:_SHOWN_LEAKS]
    ]


def _pattern(label: str) -> re.Pattern[bytes]:
    word = re.escape(label.encode())
    return re.compile(rb"(?<![A-Za-z0-9])" + word + rb"(?![A-Za-z0-9])", re.IGNORECASE)
