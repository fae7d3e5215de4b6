"""What a paired pilot's plan binds: every frozen copy in its folder, with its digest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roundkit.evidence import pilot_layout as layout
from roundkit.models.pilot_plan import PairedPlan


@dataclass(frozen=True)
class BoundInput:
    """One frozen copy.

    Attributes:
        name: Its path in the pilot's folder.
        sha256: Digest of a file's bytes, or of a folder's tree.
        is_folder: Which of the two it is.
    """

    name: str
    sha256: str
    is_folder: bool


def bound_inputs(plan: PairedPlan) -> Iterator[BoundInput]:
    """Yield every frozen copy that a plan binds."""
    for frozen in plan.tasks:
        task = frozen.task.id
        yield BoundInput(layout.task_input(task, "fixture"), frozen.fixture_sha256, True)
        yield BoundInput(layout.task_input(task, "prompt"), frozen.prompt_sha256, False)
        yield BoundInput(layout.task_input(task, "rubric"), frozen.rubric_sha256, False)
        if frozen.drift_sha256 is not None:
            yield BoundInput(layout.task_input(task, "drift"), frozen.drift_sha256, False)
        for check, sha256 in frozen.hidden_sha256.items():
            yield BoundInput(layout.task_input(task, f"hidden/{check}"), sha256, True)
    for variant in plan.variants:
        if variant.guide_sha256 is not None:
            yield BoundInput(layout.variant_guide(variant.variant.id), variant.guide_sha256, False)
    for tool, sha256 in plan.tools_sha256.items():
        yield BoundInput(layout.tool_files(tool), sha256, True)
    if plan.scripts_sha256 is not None:
        yield BoundInput(layout.SCRIPTS, plan.scripts_sha256, True)
