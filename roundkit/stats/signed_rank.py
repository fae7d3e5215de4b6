"""Exact signed-rank test and Hodges-Lehmann estimate on whole numbers, conditional on ties and zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SignedRank:
    """Result of one signed-rank test.

    Attributes:
        doubled_statistic: Twice the sum of the ranks of the positive values.
        p_gain: Probability, under symmetry about zero, of a sum at least this large.
        p_loss: Probability, under symmetry about zero, of a sum at most this large.
    """

    doubled_statistic: int
    p_gain: float
    p_loss: float


def doubled_mid_ranks(values: Sequence[int]) -> list[int]:
    """Return twice the mid-rank of each ``|value|`` among all of them, zero for a value of zero.

    Zeros take part in the ranking and are then left out of the sum (Pratt, 1959), so that moving one value
    from zero to a gain can never weaken the evidence for a gain.

    Args:
        values: n whole numbers, in any unit.

    Returns:
        n whole numbers, in the order of ``values``.
    """
    by_size = sorted(range(len(values)), key=lambda i: abs(values[i]))
    ranks = [0] * len(values)
    start = 0
    while start < len(by_size):
        size = abs(values[by_size[start]])
        end = start
        while end < len(by_size) and abs(values[by_size[end]]) == size:
            end += 1
        for position in by_size[start:end]:
            ranks[position] = start + 1 + end if size else 0
        start = end
    return ranks


def null_distribution(doubled_ranks: Sequence[int]) -> NDArray[np.float64]:
    """Return the distribution of the doubled rank sum when every sign is a fair coin.

    Built one rank after another (Streitberg and Röhmel, 1986). Halving is exact in binary, so that the
    probabilities are exact up to 52 ranks and correct to the last digits beyond.

    Args:
        doubled_ranks: Whole numbers from :func:`doubled_mid_ranks`; zeros carry no sign and are skipped.

    Returns:
        Probabilities of the sums 0, 1, …, sum(doubled_ranks).
    """
    mass = np.ones(1)
    for rank in doubled_ranks:
        if rank:
            longer = np.zeros(len(mass) + rank)
            longer[: len(mass)] += mass
            longer[rank:] += mass
            mass = longer / 2
    return mass


def signed_rank(values: Sequence[int]) -> SignedRank:
    """Test symmetry about zero (Wilcoxon, 1945), exactly, given the ties and zeros that occurred.

    Args:
        values: n whole numbers; positive means a gain.

    Returns:
        The doubled statistic and both one-sided probabilities; 1 and 1 when every value is zero.
    """
    ranks = doubled_mid_ranks(values)
    statistic = sum(rank for rank, value in zip(ranks, values, strict=True) if value > 0)
    mass = null_distribution(ranks)
    # The distribution is symmetric; summing the short tail from its small end keeps full precision in both.
    mirrored = len(mass) - 1 - statistic
    return SignedRank(
        doubled_statistic=statistic,
        p_gain=min(1.0, float(np.cumsum(mass)[mirrored])),
        p_loss=min(1.0, float(np.cumsum(mass)[statistic])),
    )


def hodges_lehmann(values: Sequence[int]) -> Fraction:
    """Return the median of all pairwise means, each value with itself included (Hodges and Lehmann, 1963).

    Args:
        values: At least one whole number.

    Returns:
        The exact median, in the unit of ``values``.
    """
    count = len(values)
    sums = sorted(values[i] + values[j] for i in range(count) for j in range(i, count))
    return Fraction(sums[(len(sums) - 1) // 2] + sums[len(sums) // 2], 4)
