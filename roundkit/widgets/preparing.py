"""What ``prepare.ipynb`` shows: a draft, what its lanes may change, what stands against it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from roundkit.core.errors import Refused, RoundkitError
from roundkit.core.files import atomic_write
from roundkit.core.globs import PathIndex
from roundkit.models.round_plan import LaneDraft, RoundPlan
from roundkit.rounds.layout import read_plan, round_folder
from roundkit.rounds.prepare import freeze, plan_of
from roundkit.rounds.prepare_incumbent import advice_on
from roundkit.rounds.prepare_look import Look, look_at
from roundkit.rounds.propose import propose_round
from roundkit.rules.forecast import Forecast, forecast
from roundkit.rules.scope import as_index, empty_globs, overlaps
from roundkit.widgets import pieces
from roundkit.widgets.pieces import Piece, Row
from roundkit.widgets.progress import notebook_progress

_SHOWN_PATHS = 400


def draft_round(campaign: str | Path, round_file: str | Path, propose: int) -> Piece:
    """Draft a round from the search plan where none is written yet; an existing file is left as it is.

    Args:
        campaign: The campaign plan, YAML.
        round_file: The round, YAML.
        propose: At most how many lanes a draft has; 0 drafts nothing.

    Returns:
        The round file as it is now.

    Raises:
        Refused: the campaign cannot be read, or no entry is worth a lane.
    """
    path = Path(round_file)
    drafted = propose > 0 and not path.exists()
    if drafted:
        draft = propose_round(Path(campaign), propose, core=max(os.sched_getaffinity(0)))
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, draft.content)
    if not path.is_file():
        return pieces.sentence(f"There is no {path.name} yet.", "bad", remedy="set `propose` to draft one")
    text = path.read_text(encoding="utf-8", errors="replace")
    said = f"{path.name} was drafted: edit it, then run the notebook again" if drafted else path.name
    return pieces.folded(said, pieces.listing(text), opened=drafted)


def look_at_round(campaign: str | Path, round_file: str | Path, out: str | Path | None = None) -> Look:
    """Look at both files and the repository; nothing is written.

    Args:
        campaign: The campaign plan, YAML.
        round_file: The round, YAML.
        out: The round directory to make; null or empty when that is not known yet.
    """
    target = Path(out).absolute() if out and frozen_before(campaign, out) is None else None
    return look_at(Path(campaign), Path(round_file), target)


def scope_tree(look: Look) -> Piece:
    """What each lane may change: the files that its globs match in the incumbent."""
    draft, paths = look.round_file.model, _paths(look)
    if draft is None or paths is None:
        return pieces.sentence(
            "The lanes cannot be shown before the files and the repository can be read.", "bad"
        )
    shown = [_lane_scope(lane, paths) for lane in draft.lanes]
    markup = pieces.element("div", pieces.joined(piece.markup for piece in shown), class_="rk-lanes")
    return Piece(markup, "\n".join(piece.text for piece in shown))


def overlap_table(look: Look) -> Piece:
    """Every pair of lanes whose globs match a common file."""
    draft, paths = look.round_file.model, _paths(look)
    found = (
        []
        if draft is None or paths is None
        else overlaps([(one.id, one.globs) for one in draft.lanes], paths)
    )
    rows: list[Row] = [(one.first, one.second, _some(one.paths)) for one in found]
    return pieces.table(
        "Lanes that overlap", ("lane", "lane", "~files of both"), rows, empty="No two lanes share a file."
    )


def refusal_table(look: Look) -> Piece:
    """Every reason why the round cannot be frozen."""
    rows: list[Row] = [(pieces.code(one.code), one.place, one.message, one.remedy) for one in look.refusals]
    headings = ("code", "where", "~what", "~what would fix it")
    return pieces.table("Refusals", headings, rows, empty="Nothing stands against this round.")


def advice_table(look: Look) -> Piece:
    """What to consider about the plan; it refuses nothing."""
    try:
        rows: list[Row] = [
            (", ".join(row.lanes) or "all", row.topic, row.found, row.suggestion)
            for row in advice_on(plan_of(look))
        ]
    except Refused:
        return pieces.sentence("Advice is given once nothing stands against the round.")
    headings = ("lanes", "about", "~what the campaign says", "~consider")
    return pieces.table("Advice, which refuses nothing", headings, rows, empty="There is nothing to advise.")


def forecast_table(look: Look) -> Piece:
    """The most that the round can cost."""
    try:
        costs = forecast(plan_of(look))
    except Refused:
        return pieces.sentence("The forecast is made once nothing stands against the round.")
    made = [row for row in costs.rows if row.experiments]
    rows: list[Row] = [(row.purpose, str(row.experiments), str(row.trials)) for row in made]
    found = pieces.table("At most", ("purpose", "#experiments", "#trials"), rows, empty="")
    return pieces.together(found, pieces.facts(_totals(costs)))


def freeze_round(look: Look, out: str | Path) -> RoundPlan | None:
    """Freeze the round that was looked at, or return the plan that was frozen there before.

    Args:
        look: The look at both files.
        out: The round directory; empty: only look.

    Returns:
        The frozen plan; null when something stands against the round, or when nothing was to be frozen.

    Raises:
        Refused: what was looked at has changed meanwhile; nothing was written.
    """
    campaign, draft = look.campaign_file.path, look.round_file.path
    before = frozen_before(campaign, out)
    if before is not None or look.refusals or not out:
        return before
    with notebook_progress() as progress:
        return freeze(campaign, draft, Path(out).absolute(), progress=progress)


def frozen_before(campaign: str | Path, out: str | Path | None) -> RoundPlan | None:
    """Return the plan that was frozen from a campaign into a folder; null when there is none."""
    if not out:
        return None
    try:
        plan = read_plan(round_folder(Path(out)))
    except RoundkitError:
        return None
    return plan if plan.campaign_path == str(Path(campaign).resolve()) else None


def is_prepared(look: Look, plan: RoundPlan | None) -> bool:
    """Say whether the round is frozen, or could be."""
    return plan is not None or not look.refusals


def prepare_sentence(look: Look, plan: RoundPlan | None) -> str:
    """Say what came of it."""
    if plan is not None:
        return f"round {plan.round_id} is frozen, digest {plan.digest()}"
    if not look.refusals:
        return "nothing stands against the round; nothing was frozen, since `out` is empty"
    first = look.refusals[0]
    further = len(look.refusals) - 1
    return f"[{first.code}] {first.place}: {first.message}" + (f", and {further} more" if further else "")


def digest_to_post(plan: RoundPlan | None) -> Piece:
    """The digest to post where everybody sees it, before anything is launched."""
    if plan is None:
        remedy = "mend what is listed above, and set `out` to freeze the round"
        return pieces.sentence("Nothing was frozen.", remedy=remedy)
    digest = plan.digest()
    rows: list[tuple[str, pieces.Content]] = [
        ("round", plan.round_id),
        ("digest to post", pieces.code(digest)),
        ("incumbent", pieces.code(plan.incumbent)),
        ("frozen", pieces.moment(plan.frozen_utc)),
        ("deadline", pieces.moment(plan.deadline_utc)),
    ]
    return pieces.facts(rows)


def _lane_scope(lane: LaneDraft, paths: PathIndex) -> Piece:
    reached = sorted(paths.reached(lane.globs))
    unmatched = empty_globs(lane.globs, paths)
    globs = pieces.joined(map(pieces.code, lane.globs), ", ")
    parts = [pieces.element("h3", f"{lane.id}: {lane.entry}"), pieces.element("p", globs)]
    parts.append(pieces.tree(pieces.tree_of(reached[:_SHOWN_PATHS])))
    if len(reached) > _SHOWN_PATHS:
        parts.append(pieces.element("p", f"and {len(reached) - _SHOWN_PATHS} more files"))
    if unmatched:
        parts.append(pieces.element("p", f"Matches no file yet: {', '.join(unmatched)}"))
    text = f"{lane.id}: {lane.entry}\n" + "\n".join(f"  {path}" for path in reached[:_SHOWN_PATHS])
    return Piece(pieces.element("section", pieces.joined(parts)), text)


def _paths(look: Look) -> PathIndex | None:
    return None if look.survey is None else as_index(look.survey.paths)


def _totals(costs: Forecast) -> list[tuple[str, pieces.Content]]:
    minutes = costs.unknown if costs.device_minutes is None else f"at most {costs.device_minutes:.1f}"
    caps = [(cap.dimension, "uncapped" if cap.total is None else str(cap.total)) for cap in costs.agents]
    agents = ", ".join(f"{name} {total}" for name, total in caps)
    return [
        ("tickets", str(costs.tickets)),
        ("trials", str(costs.trials)),
        ("device minutes", minutes),
        ("agents, all lanes together", agents),
    ]


def _some(paths: Sequence[str], most: int = 5) -> str:
    left = len(paths) - most
    return ", ".join(paths[:most]) + (f" and {left} more" if left > 0 else "")
