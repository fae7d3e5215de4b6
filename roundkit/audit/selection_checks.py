"""Selected tickets: what their estimates would be without the luck that selected them."""

from __future__ import annotations

import math

from roundkit.audit.findings import Check
from roundkit.audit.material import Material
from roundkit.models.verdict import VerdictRecord
from roundkit.stats.differences import gain_fraction
from roundkit.stats.ratio import conditional_estimate


def show_selection(material: Material) -> list[Check]:
    """Return one row a composed lane: its ticket's gain as measured, and corrected for its selection.

    Nothing is wrong with either. Of several tickets the best is biased upward, which is why a round's gain is
    a fresh rerun and never one of these.
    """
    shown = []
    for step in material.ledger.composition:
        ticket = material.ticket(step.ticket)
        corrected = None if ticket is None or ticket.verdict is None else corrected_gain(ticket.verdict)
        if ticket is None or ticket.verdict is None or ticket.verdict.gain is None or corrected is None:
            continue
        detail = (
            f"ticket estimate {100 * ticket.verdict.gain:.2f} %, selected for it; conditional on that "
            f"{100 * corrected:.2f} % (Zhong and Prentice, 2008)"
        )
        shown.append(Check("selection", True, ticket.ticket, detail))
    return shown


def corrected_gain(verdict: VerdictRecord) -> float | None:
    """Return the gain of a passing ticket, a fraction, most likely given that it passed; None without one.

    Args:
        verdict: Its verdict. What selected it is the evidence that a pass required.
    """
    if verdict.delta is None or not verdict.standard_error or verdict.z_required is None:
        return None
    error = math.hypot(verdict.standard_error, verdict.session_sd or 0.0)
    return gain_fraction(conditional_estimate(verdict.delta, error, verdict.z_required))
