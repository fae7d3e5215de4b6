"""Freezing a wave campaign: the plan with its tools, whole or absent, and never changed afterwards."""

from __future__ import annotations

import errno
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.core.files import atomic_write, sync_folder, tree_digest
from roundkit.core.git import Repository
from roundkit.core.yamlfile import place_of, plain, read_yaml, schema_refusals
from roundkit.evidence import wave_layout as names
from roundkit.measure.trees import copy_tree, list_files, remove_tree
from roundkit.models.base import check_writable
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.wave_plan import WaveDraft, WavePlan
from roundkit.rounds.prepare_runtime import find_runtime, system_exposure
from roundkit.rules.authority import agent_can_spend
from roundkit.waves.folder import CampaignFolder

_OF_A_LANE = ("executable", "effort", "allowed_tools", "wait_s", "limits", "preset", "command")
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
    refusals = list(_problems(draft, content, plan_file, root))
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
    for tag in folder.tags()[-1:]:
        if folder.read_wave(tag).plan_sha256 != folder.plan_sha256:
            raise refuse(
                "plan-changed",
                f"wave {tag} was drawn by another plan than {folder.at(names.PLAN)} is now",
                remedy="put the frozen plan back, or freeze the campaign anew in another folder",
            )
    if tree_digest(folder.tools, skip=frozenset()) != folder.plan.tools_sha256:
        raise refuse(
            "tools-changed",
            f"{folder.tools} is not what was frozen",
            remedy="freeze the campaign anew in another folder",
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


def _problems(draft: WaveDraft, content: object, plan_file: Path, root: Path) -> Iterator[Refusal]:
    def at(*keys: str | int) -> str:
        return place_of(content, keys, plan_file.name)

    tree, tools = Path(draft.tree), Path(draft.tools)
    if not _is_working_tree(tree):
        yield Refusal(
            "tree-missing",
            f"{tree} is not the top of a git working tree with a commit",
            at("tree"),
            "name the working tree that banked work is to be committed to",
        )
    if not tools.is_dir():
        yield Refusal("tools-missing", f"{tools} is no folder", at("tools"), "name the commands' folder")
    elif (special := _special_file(tools)) is not None:
        yield Refusal(
            "tools-special",
            f"{special} is no file, folder or link",
            at("tools"),
            "remove it: it cannot be kept",
        )
    for place, key in ((tree, "tree"), (tools, "tools")):
        if root.is_relative_to(place):
            yield Refusal(
                "folder-inside",
                f"the campaign's folder {root} lies in {place}",
                at(key),
                "give --dir a folder outside tree and tools",
            )
    for position, name in enumerate(draft.provision):
        folder = Path(name)
        if not folder.is_dir():
            yield Refusal("readable-missing", f"{name} is no folder", at("provision", position), "correct it")
        elif any(private.is_relative_to(folder.resolve()) for private in (root, tree)):
            yield Refusal(
                "readable-exposes",
                f"{name} holds the tree or the campaign's folder",
                at("provision", position),
                "name a narrower folder",
            )
    if (system := system_exposure(root)) is not None:
        yield Refusal(
            "folder-readable",
            f"the campaign's folder {root} lies in {system}, which every command may read",
            "--dir",
            "give another folder",
        )
    yield from _agent_problems(draft, at)
    agent = draft.draft.agent
    for name in (*agent.readable, *(credential.source for credential in agent.credentials)):
        shown = Path(name).resolve()
        if any(private.is_relative_to(shown) or shown.is_relative_to(private) for private in (root, tree)):
            yield Refusal(
                "readable-exposes",
                f"{name} would show a draft agent the tree or the campaign's folder",
                at("draft", "agent"),
                "keep programs and credentials outside both",
            )


def _special_file(tools: Path) -> Path | None:
    """Return a pipe, socket or device among the tools, which no copy of them would have."""
    for name in list_files(tools):
        kind = (tools / name).lstat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISLNK(kind):
            return tools / name
    return None


def _is_working_tree(tree: Path) -> bool:
    if not tree.is_dir():
        return False
    top = Repository(tree).git("rev-parse", "--show-toplevel", check=False)
    return (
        top.exit_code == 0
        and Path(top.text).resolve() == tree
        and Repository(tree).resolve("HEAD") is not None
    )


def _agent_problems(draft: WaveDraft, at: Callable[..., str]) -> Iterator[Refusal]:
    agent, plain_agent = draft.draft.agent, LaneAgent()
    for key in _OF_A_LANE:
        if getattr(agent, key) != getattr(plain_agent, key):
            yield Refusal(
                "unused-key",
                f"a draft agent has no `{key}`",
                at("draft", "agent", key),
                "say it in `draft.argv`, or leave it out",
            )
    if not agent_can_spend(agent):
        return
    if draft.authorization is None:
        yield Refusal(
            "not-authorized",
            "its draft agents can spend money, and the plan authorizes nobody to",
            at("authorization"),
            "name who allows it, how much, until when and with which models",
        )
        return
    for position, pool in enumerate(draft.pools):
        if pool.model not in draft.authorization.models:
            yield Refusal(
                "not-authorized",
                f"model {pool.model!r} is not among the authorized: {', '.join(draft.authorization.models)}",
                at("pools", position, "model"),
                "authorize it, or leave the pool out",
            )


def _write(plan: WavePlan, tools: Path, root: Path) -> None:
    """Build the folder beside its place and move it there, so that of two at once one comes too late."""
    root.parent.mkdir(parents=True, exist_ok=True)
    making = root.with_name(f".{root.name}.{secrets.token_hex(6)}.freezing")
    try:
        making.mkdir()
        making.chmod(0o711)
        copy_tree(tools, making / names.TOOLS)
        (making / names.WAVES).mkdir()
        atomic_write(making / names.PLAN, plan.to_bytes())
        making.rename(root)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        if not (root / names.PLAN).exists():
            raise refuse(
                "folder-in-use", f"{root} is not empty and holds no campaign", remedy="give another --dir"
            ) from error
    finally:
        remove_tree(making)
    sync_folder(root.parent)


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
