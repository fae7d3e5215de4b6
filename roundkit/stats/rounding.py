"""Rounding rules that keep float noise away from every comparison in this room.

Log ratios become whole multiples of a quantum before anything is computed from them. Sums, means, residuals,
ties and zeros are then exact integers or fractions, the same on every platform. Only the last step (a tail
probability) is a float; it is rounded to ``Z_DIGITS`` decimals before it is compared or recorded.
"""

from __future__ import annotations

UNITS_PER_LOG = 10**12
"""How many quanta make one unit of log ratio: a quantum is far below what any instrument repeats to."""

Z_DIGITS = 9
"""Decimals kept of a z value."""

GAIN_DIGITS = 9
"""Decimals kept of a gain given as a fraction; coarser than the quantum, so that 99 against 100 is 1 %."""

Z_CAP = 8.0
"""Largest z value reported; a deterministic instrument would give infinity, which JSON cannot hold."""


def to_units(log_ratio: float) -> int:
    """Return a log ratio as a whole number of quanta, ``UNITS_PER_LOG`` to one unit."""
    return round(float(log_ratio) * UNITS_PER_LOG)


def round_z(z: float) -> float:
    """Return ``z`` capped to ``±Z_CAP`` and rounded to ``Z_DIGITS`` decimals, never minus zero."""
    return round(max(-Z_CAP, min(Z_CAP, z)), Z_DIGITS) + 0.0


def round_gain(gain: float) -> float:
    """Return a gain (fraction) rounded to ``GAIN_DIGITS`` decimals, never minus zero."""
    return round(gain, GAIN_DIGITS) + 0.0


def round_significant(value: float, digits: int = 12) -> float:
    """Return ``value`` rounded to ``digits`` significant digits."""
    return float(f"{value:.{digits}g}")
