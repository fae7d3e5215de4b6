"""The incumbent beside what an owner may take for it: the branch's last commit, or another round's result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundkit.core.errors import Refusal
from roundkit.core.git import Repository
from roundkit.models.campaign import CampaignPlan
from roundkit.models.ledger import RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.prepare_repository import Survey, some
from roundkit.rules.advice import Advice, advise
from roundkit.rules.round_facts import Place

_OWN_FOLDERS = ("evidence", "notebooks")


def advice_on(plan: RoundPlan) -> tuple[Advice, ...]:
    """Return what speaks against a plan: by the campaign's numbers, and by its branch."""
    return (*advise(plan), *_newer_files(plan))


def _newer_files(plan: RoundPlan) -> Iterator[Advice]:
    """Say which files of the program the branch has otherwise: a round may start from an earlier commit."""
    repository, branch = Repository(Path(plan.repository)), plan.campaign.repository.branch
    head = repository.resolve(f"refs/heads/{branch}")
    if head is None or head == plan.incumbent:
        return
    # Only what the branch itself changed: an incumbent that was not merged yet is ahead of it.
    shared = repository.git("merge-base", plan.incumbent, head, check=False)
    since = repository.changed_paths(shared.text, head) if shared.exit_code == 0 else frozenset()
    newer = sorted(since & repository.changed_paths(plan.incumbent, head) - _own_paths(plan, since))
    if newer:
        yield Advice(
            "incumbent",
            (),
            f"{branch} has other contents of {some(newer)} than {plan.incumbent[:12]}, the round's incumbent",
            f"to start from {branch}, set search_state.incumbent_revision to {head}, and incumbent_evidence"
            " and next_candidate_parent to null",
        )


def _own_paths(plan: RoundPlan, paths: frozenset[str]) -> frozenset[str]:
    """Return the paths that are the campaign's: its file, what lies beside it, and no part of the program."""
    root, home = Path(plan.repository), Path(plan.campaign_path).parent
    if not home.is_relative_to(root):
        return frozenset()
    beside = home.relative_to(root).as_posix()
    if beside != ".":
        return frozenset(path for path in paths if path.startswith(f"{beside}/"))
    own = Path(plan.campaign_path).name
    return frozenset(path for path in paths if path == own or path.partition("/")[0] in _OWN_FOLDERS)


def incumbent_problems(
    campaign_file: Path, campaign: CampaignPlan, survey: Survey, at: Place
) -> Iterator[Refusal]:
    """Yield why the round that is named as the incumbent's did not make it: no audit would follow that chain.

    Args:
        campaign_file: The campaign plan; evidence is named from its folder.
        campaign: What it says.
        survey: The repository at the incumbent.
        at: Names a place in the campaign file.
    """
    state = campaign.search_state
    if state.incumbent_evidence is None:
        return
    path = campaign_file.parent / state.incumbent_evidence
    try:
        ledger = RoundLedger.from_bytes(path.read_bytes(), place=str(path))
    except (OSError, ValueError):
        return  # export and audit say what is wrong with evidence
    if ledger.head_tree != survey.tree:
        yield Refusal(
            "incumbent-mismatch",
            f"round {ledger.round_id} ended with other files than {survey.incumbent}",
            at("search_state", "incumbent_evidence"),
            "name that round's incumbent, or set incumbent_evidence to null: no round made this one",
        )
