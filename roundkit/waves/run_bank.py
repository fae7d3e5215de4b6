"""A run's own commit: found again where a killed gater made it, else made of what nobody has banked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from roundkit.models.wave_records import Draft, Key, Rejected, Target
from roundkit.waves.banked import BankCommit, bank_commits, bank_message, banked_keys
from roundkit.waves.commit import Committer
from roundkit.waves.owners import BANKED, reject_row
from roundkit.waves.run_folder import RunFolder


@dataclass(frozen=True)
class RunBank:
    """Banks what a run's gate found right.

    Attributes:
        folder: The run.
        committer: Writes the tree.
        mark: Told each state that the run has come to.
    """

    folder: RunFolder
    committer: Committer
    mark: Callable[[str], None]

    def known(self) -> BankCommit | None:
        """Return the commit that a killed gater made of this run, if it came so far."""
        campaign, run = self.folder.campaign, self.folder.run
        own = (campaign.plan_sha256, run.tag, run.number)
        commits = bank_commits(campaign.tree, campaign.plan.plan.campaign_id)
        return next((each for each in commits if (each.plan_sha256, each.tag, each.run) == own), None)

    def left(self, right: Sequence[Draft], known: BankCommit | None) -> tuple[list[Draft], list[Rejected]]:
        """Return what this run banks, and what somebody else has banked: of its own commit all that it names.

        Args:
            right: Drafts that the gate found right.
            known: The run's commit, where there is one.
        """
        if known is not None:
            return [each for each in right if (each.group, each.name, each.sha256) in known.banked], []
        campaign = self.folder.campaign
        others = banked_keys(campaign.tree, campaign.plan.plan.campaign_id)
        refused = [
            reject_row(self.folder.run.tag, "gate", draft, BANKED)
            for draft in right
            if (draft.group, draft.name) in others
        ]
        return [draft for draft in right if (draft.group, draft.name) not in others], refused

    def make(self, banked: Sequence[Draft], targets: Mapping[Key, Target]) -> str:
        """Write drafts to the tree, commit them, and return the commit.

        Raises:
            Refused: ``tree-busy``.
            CommandFailed: git cannot commit it.
            OSError: a file cannot be written.
        """
        campaign, run = self.folder.campaign, self.folder.run
        files = {
            targets[draft.group, draft.name].output: self.folder.store.get(draft.sha256) for draft in banked
        }
        campaign_id = campaign.plan.plan.campaign_id
        message = bank_message(campaign_id, campaign.plan_sha256, run.tag, run.number, banked)
        self.committer.write(files)
        self.mark("tree written")

        def known() -> str | None:
            found = self.known()
            return None if found is None else found.commit

        commit = self.committer.bank(files, message, known)
        self.mark("committed")
        return commit
