"""Tail probabilities and quantiles of the normal and the t distribution, typed.

scipy's rooms are named from its root, which opens each at its first use: most commands need none of them, and
opening them took half of a command's start.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def normal_sf(z: float) -> float:
    """Return the probability that a standard normal deviate exceeds ``z``."""
    return float(scipy.special.ndtr(-z))


def normal_isf(p: float) -> float:
    """Return the ``z`` that a standard normal deviate exceeds with probability ``p``."""
    return -float(scipy.special.ndtri(p))


def t_sf(t: float, df: float) -> float:
    """Return the probability that a t deviate with ``df`` degrees of freedom exceeds ``t``."""
    return float(scipy.special.stdtr(df, -t))


def t_isf(p: float, df: float) -> float:
    """Return the ``t`` that a t deviate with ``df`` degrees of freedom exceeds with probability ``p``."""
    return -float(scipy.special.stdtrit(df, p))


def t_to_z(t: ArrayLike, df: float) -> FloatArray:
    """Return the normal deviates with the same tail probabilities as t deviates, element by element."""
    values = np.asarray(t, dtype=np.float64)
    return np.asarray(
        -np.sign(values) * scipy.special.ndtri(scipy.special.stdtr(df, -np.abs(values))), dtype=np.float64
    )
