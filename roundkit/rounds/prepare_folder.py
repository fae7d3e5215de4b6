"""A new round directory: plan, secret and the coordinator's own copy of the incumbent, whole or absent."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write, whole_folder, write_json
from roundkit.core.git import Repository
from roundkit.core.process import CommandFailed
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.layout import RoundFolder

INCUMBENT_BRANCH = "incumbent"
_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600


def write_round_folder(plan: RoundPlan, secret: bytes, out: Path, source: Repository) -> None:
    """Build the round directory beside its place and move it there, so that it is whole or absent.

    Args:
        plan: The plan to freeze.
        secret: The coordinator's secret.
        out: The round directory; missing or empty.
        source: The campaign repository.

    Raises:
        Refused: ``repository-incomplete``, when objects of the incumbent are missing.
        OSError: it cannot be written.
    """
    with whole_folder(out) as partial:
        draft = RoundFolder(partial)
        draft.store.mkdir()
        draft.store.chmod(_PRIVATE_FOLDER)
        atomic_write(draft.secret_file, secret, mode=_PRIVATE_FILE)
        digest = write_json(draft.plan_file, plan.to_json_value())
        atomic_write(draft.store / "plan-digest", f"{digest}\n".encode(), mode=_PRIVATE_FILE)
        _copy_incumbent(source, plan.incumbent, draft.repository)


def _copy_incumbent(source: Repository, incumbent: str, target: Path) -> None:
    """Copy the incumbent and its history into a bare repository of the coordinator's own."""
    object_format = source.git("rev-parse", "--show-object-format").text
    target.mkdir()
    copy = Repository(target)
    copy.git("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}")
    copy.git("symbolic-ref", "HEAD", f"refs/heads/{INCUMBENT_BRANCH}")
    copy.git("config", "receive.shallowUpdate", "true")
    try:
        # A push sends objects through a pipe: nothing is hard-linked to the owner's repository.
        source.git("push", "--quiet", "--no-verify", target, f"{incumbent}:refs/heads/{INCUMBENT_BRANCH}")
    except CommandFailed as error:
        raise refuse(
            "repository-incomplete",
            f"the incumbent cannot be copied: {error.completed.error_tail}",
            place=str(source.path),
            remedy="fetch the missing objects (`git fetch --unshallow`, `git fsck`)",
        ) from error
