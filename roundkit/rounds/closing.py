"""How far ``close`` of a round is, from what it wrote down: for whoever watches, serves or closes it."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.core.errors import refuse
from roundkit.models.ledger import CompositionStep, RerunRecord
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.layout import RoundFolder
from roundkit.store import RoundStore

_RERUNS = ("rerun", "fallback")


@dataclass(frozen=True)
class Closing:
    """How far ``close`` is.

    Attributes:
        running: Who closes the round, null when nobody does.
        begun: Whether it has begun: from then on nothing is measured for tickets.
        steps: Composition steps that are measured.
        reruns: Reruns that are measured.
        closed_utc: When the round was closed, as it is written down; null before that is decided.
        index_digest: Digest of the exported evidence's index, null before.
        advanced: The new incumbent; empty when the old one stays; null before that is written down.
    """

    running: str | None = None
    begun: bool = False
    steps: tuple[CompositionStep, ...] = ()
    reruns: tuple[RerunRecord, ...] = ()
    closed_utc: str | None = None
    index_digest: str | None = None
    advanced: str | None = None

    @property
    def finished(self) -> bool:
        """Whether close came to its end."""
        return self.advanced is not None

    def sentence(self) -> str:
        """Say what became of a round whose close came to its end."""
        kept = f"new incumbent {self.advanced}" if self.advanced else "the incumbent stays"
        return f"closed at {self.closed_utc}: {kept}"


def read_closing(store: RoundStore, running: str | None = None) -> Closing:
    """Return how far close is.

    Args:
        store: The round's.
        running: Who closes it, null when nobody does.
    """
    names = store.steps.names()
    bodies = {name: store.steps.get(name) or b"" for name in names}
    steps = [name for name in names if name.startswith("step-")]
    return Closing(
        running=running,
        begun=bool(names),
        steps=tuple(CompositionStep.from_bytes(bodies[name], place=name) for name in steps),
        reruns=tuple(RerunRecord.from_bytes(bodies[name], place=name) for name in _RERUNS if name in bodies),
        closed_utc=_text(bodies.get("closing-time")),
        index_digest=_text(bodies.get("evidence")),
        advanced=_text(bodies.get("advanced")),
    )


def _text(body: bytes | None) -> str | None:
    return None if body is None else body.decode()


def refuse_closed(folder: RoundFolder, plan: RoundPlan, store: RoundStore) -> None:
    """Refuse what makes no sense any more once a round is decided.

    Raises:
        Refused: ``round-closing`` once close has begun, ``round-closed`` after it.
    """
    closing = read_closing(store)
    if closing.finished:
        raise refuse(
            "round-closed",
            f"round {plan.round_id} was {closing.sentence()}",
            place=str(folder.root),
            remedy="see what came of it with `roundkit status ROUND_DIR`, or prepare another round",
        )
    if closing.begun:
        raise refuse(
            "round-closing",
            f"close has begun to decide round {plan.round_id}",
            place=str(folder.root),
            remedy="run `roundkit close ROUND_DIR`; it goes on where it was",
        )
