"""Freezing a wave campaign: the plan with its tools, whole or absent, and never changed afterwards."""

from __future__ import annotations

import errno
from pathlib import Path

from pydantic import ValidationError

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.core.files import atomic_write, tree_digest, whole_folder
from roundkit.core.git import Repository
from roundkit.core.yamlfile import place_of, plain, read_yaml, schema_refusals
from roundkit.evidence import wave_layout as names
from roundkit.measure.trees import copy_tree
from roundkit.models.base import check_writable
from roundkit.models.wave_plan import WaveDraft, WavePlan
from roundkit.rounds.prepare_runtime import find_runtime
from roundkit.waves.folder import CampaignFolder, check_plan
from roundkit.waves.plan_problems import plan_problems

_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def freeze(plan_file: Path, root: Path) -> CampaignFolder:
    """Freeze a plan into a folder, or return the campaign there when it is this one already.

    Args:
        plan_file: The owner's ``wave-plan.yaml``.
        root: The campaign's folder: missing, empty, or this campaign's from an earlier start.

    Raises:
        Refused: every problem of the plan at once; ``plan-changed``: the folder is another campaign's.
    """
    draft, content = _read_draft(plan_file)
    check_writable(draft, plan_file.name)
    root = root.resolve()

    def at(*keys: str | int) -> str:
        return place_of(content, keys, plan_file.name)

    refusals = list(plan_problems(draft, root, at))
    runtime, missing = find_runtime(draft.python, f"{plan_file.name}: python")
    refusals += missing
    if refusals or runtime is None:
        raise Refused(refusals)
    provided = tuple(dict.fromkeys((*runtime.readable, *map(str, _resolved(draft.provision)))))
    tools = Path(draft.tools)
    if not (root / names.PLAN).exists():
        plan = WavePlan(
            format="roundkit-wave-plan/1",
            frozen_utc=now_utc(),
            plan=draft,
            runtime=runtime.model_copy(update={"readable": provided}),
            tools_sha256=tree_digest(tools, skip=frozenset()),
            started_at=_head(Path(draft.tree)),
        )
        _write(plan, tools, root)
    folder = CampaignFolder(root)
    _check_same(folder, draft, tools)
    return folder


def check_tools(folder: CampaignFolder) -> None:
    """Check that the frozen tools are what was frozen, and the plan what earlier waves were drawn by.

    Raises:
        Refused: ``tools-changed`` or ``plan-changed``.
    """
    check_plan(folder)
    there = folder.tools.is_dir()
    if not there or tree_digest(folder.tools, skip=frozenset()) != folder.plan.tools_sha256:
        raise refuse(
            "tools-changed",
            f"{folder.tools} is {'not what was frozen' if there else 'missing, as it is in an export'}",
            place=str(folder.tools),
            remedy="name the campaign's own folder, or freeze the campaign anew in another one",
        )


def _read_draft(plan_file: Path) -> tuple[WaveDraft, object]:
    _, content = read_yaml(plan_file)
    try:
        # JSON's way in, so that lists become the tuples of a frozen record.
        draft = WaveDraft.model_validate(plain(content))
    except ValidationError as error:
        raise Refused(schema_refusals(error.errors(), content, plan_file.name)) from error
    base = plan_file.resolve().parent
    tree, tools = ((base / name).resolve() for name in (draft.tree, draft.tools))
    return draft.model_copy(update={"tree": str(tree), "tools": str(tools)}), content


def _write(plan: WavePlan, tools: Path, root: Path) -> None:
    """Build the folder beside its place and move it there, so that of two at once one comes too late."""
    try:
        with whole_folder(root) as making:
            making.chmod(0o711)
            copy_tree(tools, making / names.TOOLS)
            (making / names.WAVES).mkdir()
            atomic_write(making / names.PLAN, plan.to_bytes())
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        if not (root / names.PLAN).exists():
            raise refuse(
                "folder-in-use",
                f"{root} is not empty and holds no campaign",
                place="--dir",
                remedy="give another folder",
            ) from error


def _check_same(folder: CampaignFolder, draft: WaveDraft, tools: Path) -> None:
    frozen = folder.plan
    changed = [
        key
        for key in WaveDraft.model_fields
        if getattr(frozen.plan, key) != getattr(draft, key)
    ]  # fmt: skip
    if tree_digest(tools, skip=frozenset()) != frozen.tools_sha256:
        changed.append("the files in tools")
    if changed:
        raise refuse(
            "plan-changed",
            f"{folder.root} holds campaign {frozen.plan.campaign_id} with another {', '.join(changed)}",
            place=str(folder.at(names.PLAN)),
            remedy="a frozen campaign does not change: give another --dir",
        )


def _head(tree: Path) -> str:
    head = Repository(tree).resolve("HEAD")
    assert head is not None
    return head


def _resolved(folders: tuple[str, ...]) -> list[Path]:
    return [Path(name).resolve() for name in folders]
