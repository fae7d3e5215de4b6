"""The chain of rounds: this evidence names the digest of the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.evidence import EvidenceProblem, RoundEvidence, open_evidence


def check_chain(material: Material) -> list[Check]:
    """Check the link to the previous round against whatever evidence lies beside this one."""
    previous = material.evidence.index.previous
    beside = _beside(material)
    found = next((evidence for evidence in beside if evidence.digest == previous), None)
    if previous is not None and found is None and not beside:
        return [
            Check("chain", True, "index.json", f"names {previous}, which does not lie beside: not compared")
        ]
    problems = list(_link_problems(material, found, beside))
    return conclude("chain", problems, "" if problems else _agreed(material, found))


def _agreed(material: Material, found: RoundEvidence | None) -> str:
    if found is None:
        return "the campaign's first round"
    follows = f"follows {found.index.subject_id}"
    if found.ledger.head_tree == material.plan.incumbent_tree:
        return follows
    return f"{follows}, but starts from an incumbent that no round made, as its plan says"


def _link_problems(
    material: Material, found: RoundEvidence | None, beside: list[RoundEvidence]
) -> Iterator[Disagreement]:
    index = material.evidence.index
    earlier = [evidence for evidence in beside if evidence.index.exported_utc < index.exported_utc]
    if found is None:
        if index.previous is not None:
            yield Disagreement("index.json", f"names {index.previous}, which no round beside it has")
        elif earlier:
            yield Disagreement(
                "index.json", f"names no previous round, but {earlier[0].index.subject_id} is earlier"
            )
        return
    try:
        ledger = found.ledger
    except EvidenceProblem as problem:
        yield Disagreement(found.index.subject_id, f"the previous round cannot be read: {problem}")
        return
    if ledger.closed_utc > material.plan.frozen_utc:
        yield Disagreement("round-plan.json", "was frozen before the previous round closed")
    # An owner may start from a commit of their own; the frozen plan then names no round that made it.
    named = material.plan.campaign.search_state.incumbent_evidence is not None
    if named and ledger.head_tree != material.plan.incumbent_tree:
        yield differs("round-plan.json", "incumbent_tree", material.plan.incumbent_tree, ledger.head_tree)


def _beside(material: Material) -> list[RoundEvidence]:
    """Return the readable evidence of the same campaign in sibling folders."""
    here = material.evidence.path.resolve()
    found = []
    for sibling in sorted(here.parent.iterdir()):
        if sibling == here or sibling.is_symlink() or not _looks_like_evidence(sibling):
            continue
        try:
            evidence = open_evidence(sibling)
        except EvidenceProblem:
            continue
        if evidence.index.campaign_id == material.evidence.index.campaign_id:
            found.append(evidence)
    return found


def _looks_like_evidence(folder: Path) -> bool:
    return not folder.name.startswith(".") and (folder / "index.json").is_file()
