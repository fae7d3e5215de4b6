"""The order of trials and their seeds, from the coordinator's secret.

Coins and seeds are HMAC-SHA-256 values under a secret whose digest stands in the plan: nobody in a lane
can predict them, and an auditor who is given the secret derives the same ones.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal

from roundkit.core.canonical import canonical_bytes
from roundkit.models.trial import PlannedTrial, Side

_SEED_BITS = 31
Order = Literal["AB", "BA"]


def plan_schedule(
    secret: bytes, round_digest: str, experiment_id: str, pairs: int
) -> tuple[PlannedTrial, ...]:
    """Return one warm-up a side, then the pairs in quads, each ABBA or BAAB by a coin.

    Args:
        secret: The coordinator's secret.
        round_digest: Digest of the frozen plan.
        experiment_id: The experiment's id.
        pairs: Number of pairs; even.

    Raises:
        ValueError: ``pairs`` is odd or not positive.
    """
    if pairs <= 0 or pairs % 2:
        raise ValueError(f"pairs come in quads of two, so their number is even and positive: {pairs}")
    trials: list[PlannedTrial] = []

    def add(pair: int | None, quad: int, side: Side, order: Order, seed: int) -> None:
        trials.append(
            PlannedTrial(index=len(trials), pair=pair, quad=quad, side=side, order=order, seed=seed)
        )

    warm_seed = _number(secret, round_digest, experiment_id, "warm-up", 0) % (1 << _SEED_BITS)
    add(None, 0, "baseline", "AB", warm_seed)
    add(None, 0, "candidate", "AB", warm_seed)
    for quad in range(pairs // 2):
        heads = _number(secret, round_digest, experiment_id, "coin", quad) & 1
        orders: tuple[Order, Order] = ("AB", "BA") if heads else ("BA", "AB")
        for offset, order in enumerate(orders):
            pair = 2 * quad + offset
            seed = _number(secret, round_digest, experiment_id, "seed", pair) % (1 << _SEED_BITS)
            sides: tuple[Side, Side] = (
                ("baseline", "candidate") if order == "AB" else ("candidate", "baseline")
            )
            for side in sides:
                add(pair, quad, side, order, seed)
    return tuple(trials)


def _number(secret: bytes, round_digest: str, experiment_id: str, use: str, index: int) -> int:
    message = canonical_bytes([round_digest, experiment_id, use, index])
    return int.from_bytes(hmac.new(secret, message, hashlib.sha256).digest()[:8], "big")
