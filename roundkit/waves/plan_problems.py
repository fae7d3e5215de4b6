"""Why a wave plan cannot be frozen: folders, globs, the draft agent, each problem with its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from roundkit.core.errors import Refusal
from roundkit.core.git import Repository
from roundkit.core.globs import PathIndex
from roundkit.evidence import wave_layout as names
from roundkit.measure.trees import list_files
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.wave_plan import WaveDraft
from roundkit.rounds.prepare_runtime import system_exposure
from roundkit.rules.authority import agent_can_spend

_OF_A_LANE = ("executable", "effort", "allowed_tools", "wait_s", "limits", "preset", "command")

Place = Callable[..., str]


def plan_problems(draft: WaveDraft, root: Path, at: Place) -> Iterator[Refusal]:
    """Yield every problem of a plan and of what it names.

    Args:
        draft: The plan as its owner wrote it, ``tree`` and ``tools`` made absolute.
        root: The campaign's folder, which need not be there.
        at: Names a place in the plan.
    """
    yield from _tree_problems(draft, at)
    yield from _tool_problems(draft, at)
    yield from _folder_inside(draft, root, at)
    yield from _provision_problems(draft, root, at)
    yield from _folder_taken(root)
    yield from _folder_readable(root)
    if not (root / names.PLAN).exists():
        yield from _glob_problems(draft, at)
    yield from _unused_keys(draft, at)
    yield from _missing_authority(draft, at)
    yield from _exposed_to_agents(draft, root, at)


def _tree_problems(draft: WaveDraft, at: Place) -> Iterator[Refusal]:
    if not _is_working_tree(Path(draft.tree)):
        yield Refusal(
            "tree-missing",
            f"{draft.tree} is not the top of a git working tree with a commit",
            at("tree"),
            "name the working tree that banked work is to be committed to",
        )


def _tool_problems(draft: WaveDraft, at: Place) -> Iterator[Refusal]:
    tools = Path(draft.tools)
    if not tools.is_dir():
        yield Refusal("tools-missing", f"{tools} is no folder", at("tools"), "name the commands' folder")
    elif (special := _special_file(tools)) is not None:
        what = f"{special} is no file, folder or link"
        yield Refusal("tools-special", what, at("tools"), "remove it: it cannot be kept")


def _folder_inside(draft: WaveDraft, root: Path, at: Place) -> Iterator[Refusal]:
    for key, place in (("tree", draft.tree), ("tools", draft.tools)):
        if root.is_relative_to(place):
            what = f"the campaign's folder {root} lies in {place}"
            yield Refusal("folder-inside", what, at(key), "give --dir a folder outside tree and tools")


def _provision_problems(draft: WaveDraft, root: Path, at: Place) -> Iterator[Refusal]:
    for position, name in enumerate(draft.provision):
        place, folder = at("provision", position), Path(name)
        if not folder.is_dir():
            yield Refusal("readable-missing", f"{name} is no folder", place, "correct it")
        elif any(private.is_relative_to(folder.resolve()) for private in (root, Path(draft.tree))):
            what = f"{name} holds the tree or the campaign's folder"
            yield Refusal("readable-exposes", what, place, "name a narrower folder")


def _folder_taken(root: Path) -> Iterator[Refusal]:
    if root.exists() and not root.is_dir():
        yield Refusal("folder-in-use", f"{root} is a file", "--dir", "give another folder")


def _folder_readable(root: Path) -> Iterator[Refusal]:
    if (system := system_exposure(root)) is not None:
        what = f"the campaign's folder {root} lies in {system}, which every command may read"
        yield Refusal("folder-readable", what, "--dir", "give another folder")


def _glob_problems(draft: WaveDraft, at: Place) -> Iterator[Refusal]:
    """Yield the committer's globs that no file matches: what was meant would be banked, or kept, nowhere."""
    tree = Path(draft.tree)
    if not _is_working_tree(tree):
        return
    listed = Repository(tree).git("ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    files = PathIndex({os.fsdecode(name) for name in listed.split(b"\0") if name})
    for key in ("paths", "others", "watched"):
        for position, glob in enumerate(getattr(draft.commit, key)):
            if not files.matching([glob]):
                yield Refusal(
                    "glob-matches-nothing",
                    f"no file of the tree matches {glob!r}",
                    at("commit", key, position),
                    "correct it, or put a file there first that says what the place is for",
                )


def _unused_keys(draft: WaveDraft, at: Place) -> Iterator[Refusal]:
    agent, plain_agent = draft.draft.agent, LaneAgent()
    for key in _OF_A_LANE:
        if getattr(agent, key) != getattr(plain_agent, key):
            yield Refusal(
                "unused-key",
                f"a draft agent has no `{key}`",
                at("draft", "agent", key),
                "say it in `draft.argv`, or leave it out",
            )


def _missing_authority(draft: WaveDraft, at: Place) -> Iterator[Refusal]:
    if not agent_can_spend(draft.draft.agent):
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


def _exposed_to_agents(draft: WaveDraft, root: Path, at: Place) -> Iterator[Refusal]:
    agent, kept_from_it = draft.draft.agent, (root, Path(draft.tree))
    for name in (*agent.readable, *(credential.source for credential in agent.credentials)):
        shown = Path(name).resolve()
        if any(private.is_relative_to(shown) or shown.is_relative_to(private) for private in kept_from_it):
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
