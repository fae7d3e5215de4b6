"""Where one run works: a fresh copy of the repository at I0, the campaign file, and a directory a round."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from roundkit.core.canonical import canonical_bytes
from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository
from roundkit.core.yamlfile import dump_yaml, load_yaml
from roundkit.evidence import policy_layout as layout
from roundkit.models.policy_plan import PolicySlot
from roundkit.pilots.policy.folder import PolicyFolder
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.prepare import freeze

_PROGRAM = "program"
_NO_BRANCH = "pilot-start"
_OPEN_FOLDER = 0o711


class Workplace:
    """One run's own copy of everything that its rounds change."""

    def __init__(self, pilot: PolicyFolder, slot: PolicySlot) -> None:
        self._pilot, self._slot = pilot, slot
        self.root = pilot.work / slot.run_id

    @property
    def campaign_file(self) -> Path:
        """The run's own campaign file, which ``close`` writes to."""
        return self.root / layout.CAMPAIGN

    def round_folder(self, number: int) -> RoundFolder:
        """Return the directory of the n-th round."""
        return RoundFolder(self.root / layout.round_name(self._slot, number))

    def make(self) -> None:
        """Copy I0 and the campaign file.

        Raises:
            Refused: ``incumbent-missing``: the owner's repository no longer has I0.
            CommandFailed: git cannot copy it.
        """
        plan = self._pilot.plan
        source, branch = Repository(Path(plan.repository)), plan.campaign.repository.branch
        if source.resolve(plan.incumbent) is None:
            raise refuse(
                "incumbent-missing",
                f"{plan.repository} has no commit {plan.incumbent}",
                place="plan.json: incumbent",
                remedy="fetch it back: every run starts from it",
            )
        program = self.root / _PROGRAM
        program.mkdir(parents=True)
        for folder in (self._pilot.work, self.root):
            folder.chmod(_OPEN_FOLDER)
        copy = Repository(program)
        copy.git("init", "--quiet", "--template=", f"--initial-branch={_NO_BRANCH}")
        source.git("push", "--quiet", "--no-verify", program, f"{plan.incumbent}:refs/heads/{branch}")
        copy.git("checkout", "--quiet", branch)
        atomic_write(self.campaign_file, self._campaign())

    def freeze_round(self, number: int, lanes: tuple[str, ...]) -> RoundFolder:
        """Freeze the n-th round with some of the lanes.

        Raises:
            Refused: as an ordinary ``prepare`` does.
        """
        plan, folder = self._pilot.plan, self.round_folder(number)
        deadline = now_utc() + timedelta(seconds=plan.round_s)
        draft = plan.round.to_json_value()
        draft |= {
            "round_id": layout.round_name(self._slot, number),
            "deadline_utc": format_utc(deadline),
            "lanes": [lane for lane in draft["lanes"] if lane["id"] in lanes],
            "authorization": plan.authorization.to_json_value() if plan.authorization else None,
        }
        order = {lane: position for position, lane in enumerate(lanes)}
        draft["lanes"].sort(key=lambda lane: order[lane["id"]])
        round_file = self.root / f"{folder.root.name}.yaml"
        atomic_write(round_file, canonical_bytes(draft))
        freeze(self.campaign_file, round_file, folder.root)
        return folder

    def _campaign(self) -> bytes:
        """Return the owner's file, about this copy, and without the evidence that is not here."""
        content = load_yaml((self._pilot.root / layout.CAMPAIGN).read_bytes(), place=layout.CAMPAIGN)
        content["repository"]["path"] = _PROGRAM
        content["search_state"]["last_round_ledger"] = None
        data: bytes = dump_yaml(content)
        return data
