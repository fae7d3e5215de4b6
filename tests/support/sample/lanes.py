"""The lanes of a sample round: what each submits, and what a rule will find of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Submission:
    """One submission of a scripted lane: its true gain, or how it ends without one.

    Attributes:
        late: Whether the round's deadline came before its turn.
    """

    gain: float = 0.0
    path: str | None = None
    reject: tuple[str, str] | None = None
    broke: tuple[str, str] | None = None
    late: bool = False


@dataclass(frozen=True)
class Lane:
    """One scripted lane: what it submits, and the lanes whose gain swallows its own."""

    id: str
    submissions: tuple[Submission, ...]
    overlaps: frozenset[str] = frozenset()
    hypothesis: str = "Doing less work takes less time."
    plane: str = "algorithm"


STANDARD_LANES = (
    Lane("L1", (Submission(0.04), Submission(0.08)), hypothesis="One compiled expression beats a loop."),
    Lane(
        "L2",
        (Submission(0.12),),
        hypothesis="An index that fits the cache is read faster.",
        plane="memory-layout",
    ),
    Lane("L3", (Submission(0.06),), overlaps=frozenset({"L2"}), hypothesis="Remembering beats asking again."),
    Lane(
        "L4",
        (
            Submission(0.0),
            Submission(-0.05),
            Submission(path="bench/driver.py", reject=("protected-path", "'bench/driver.py' is protected")),
            Submission(reject=("build", "SyntaxError: '(' was never closed")),
            Submission(broke=("candidate-crashed", "the worker was ended by signal 11")),
        ),
        hypothesis="Joined once, a page copies less.",
        plane="build",
    ),
)
NO_GAIN_LANES = (
    Lane("L1", (Submission(0.0),)),
    Lane("L2", (Submission(-0.06),)),
)
