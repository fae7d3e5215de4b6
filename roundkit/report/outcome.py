"""How a notebook says that it came to its end, and how that is read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

OUTCOME_MIME = "application/vnd.roundkit.outcome+json"
_REMEDY = "    → "
_LONGEST = 500


@dataclass(frozen=True)
class Outcome:
    """The verdict that the last cell of a notebook writes.

    Attributes:
        outcome: ``done``, or ``failed``.
        title: What the page is called.
        sentence: What came of it, in words.
    """

    outcome: Literal["done", "failed"]
    title: str
    sentence: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        value = {"outcome": self.outcome, "title": self.title, "sentence": self.sentence}
        return {OUTCOME_MIME: value, "text/plain": f"{self.outcome}: {self.sentence}"}


def conclude(done: bool, title: str, sentence: str) -> Outcome:
    """Return the verdict for the last cell of a notebook.

    Args:
        done: Whether what the notebook shows may be relied upon.
        title: What the page is called.
        sentence: Why, in words.
    """
    return Outcome("done" if done else "failed", title, sentence)


def read_outcome(notebook: Any) -> Outcome:
    """Judge an executed notebook by its cells, whatever whoever ran it says.

    A notebook is done when every code cell ran without an error and the last one wrote ``done``.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(cells, start=1):
        for output in cell.outputs:
            if output.output_type == "error":
                return Outcome("failed", "", f"code cell {number}: {output.ename}: {_said(output.evalue)}")
        if cell.execution_count is None:
            return Outcome("failed", "", f"code cell {number} of {len(cells)} never ran")
    found = (
        [output.data[OUTCOME_MIME] for output in cells[-1].outputs if _has_outcome(output)] if cells else []
    )
    if len(found) != 1:
        return Outcome(
            "failed", "", "the last cell wrote no verdict: the kernel ended before it, or it was left out"
        )
    value = found[0]
    done = value.get("outcome") == "done"
    return Outcome("done" if done else "failed", str(value.get("title", "")), str(value.get("sentence", "")))


def _has_outcome(output: Any) -> bool:
    return output.output_type in {"execute_result", "display_data"} and OUTCOME_MIME in output.data


def _said(text: str) -> str:
    """Return an error's first line, with its remedy where the next one is that."""
    first, *more = [line for line in text.splitlines() if line.strip()] or [""]
    remedy = more[0] if more and more[0].startswith(_REMEDY) else ""
    return "\n".join(line[:_LONGEST] for line in (first, remedy) if line)
