"""The incumbent, built twice: what every ticket is measured against, and the other side of A/A checks."""

from __future__ import annotations

from roundkit.core.errors import refuse
from roundkit.measure.broke import is_full
from roundkit.models.measurement import SideRef
from roundkit.rounds.building import build_side
from roundkit.rounds.disk_space import DiskFull, full_sentence
from roundkit.rounds.requests import Bench

_CHECKOUTS = ("incumbent", "incumbent-again")


def build_incumbent(bench: Bench) -> tuple[SideRef, SideRef]:
    """Build the incumbent in two checkouts.

    Raises:
        Refused: ``incumbent-broken``: its own build, import probe or smoke fails.
        DiskFull: there is no space for it.
    """
    first, second = (_build(bench, name) for name in _CHECKOUTS)
    return first, second


def _build(bench: Bench, name: str) -> SideRef:
    plan = bench.plan
    built = build_side(
        bench.folder,
        plan,
        bench.spec,
        commit=plan.incumbent,
        tree=plan.incumbent_tree,
        target=bench.checkout_folder(name),
        provision=bench.provision,
    )
    if built.side is not None:
        return built.side
    if is_full(bench.folder.checkouts):
        raise DiskFull(full_sentence(bench.folder.root, "serve"))
    raise refuse(
        "incumbent-broken",
        f"the incumbent's own {built.cause} fails: {built.detail}",
        place=str(bench.folder.plan_file),
        remedy="mend the command in campaign.yaml, or the incumbent, and prepare a new round",
    )
