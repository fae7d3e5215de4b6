"""The interpreter and the readable folders of a round: made absolute, and kept from showing too much."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from roundkit.core.errors import Refusal
from roundkit.core.process import CommandFailed, run
from roundkit.models.campaign import CampaignPlan
from roundkit.models.round_plan import FrozenRuntime
from roundkit.rules.round_facts import Place

_AUTO = "auto"
_SYSTEM = Path("/usr")
_ASK_PREFIXES = (
    "import json, sys; base = getattr(sys, '_base_executable', None) or sys.executable; "
    "print(json.dumps([sys.prefix, sys.base_prefix, base]))"
)
_ASK_TIMEOUT_S = 60.0
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")


def resolve_runtime(
    campaign: CampaignPlan, at: Place, *, keep_out: Sequence[Path]
) -> tuple[FrozenRuntime | None, list[Refusal]]:
    """Find the interpreter and every folder that it needs, and check what would become readable.

    Args:
        campaign: The campaign plan.
        at: Names a place in the campaign file.
        keep_out: Folders and files that no readable folder may hold: round folder, repository, hold-outs.
    """
    python, folders, refusals = _interpreter(campaign.runtime.python, at)
    for position, name in enumerate(campaign.runtime.readable):
        folder = Path(name)
        place = at("runtime", "readable", position)
        if not folder.is_absolute() or not folder.exists():
            refusals.append(
                Refusal(
                    "readable-missing",
                    f"{name!r} is not an existing absolute path",
                    place,
                    "give absolute paths of folders that commands need to read",
                )
            )
            continue
        folders.append(folder.resolve())
        refusals += _exposures(folder.resolve(), keep_out, place)
    if python is None or refusals:
        return None, refusals
    return FrozenRuntime(python=str(python), readable=_outermost(folders)), []


def find_runtime(wanted: str, place: str) -> tuple[FrozenRuntime | None, list[Refusal]]:
    """Find an interpreter and the folders that it needs, and nothing else.

    Args:
        wanted: Its absolute path, or ``auto`` for the one that runs roundkit.
        place: What to call it in a refusal.
    """
    python, folders, refusals = _interpreter(wanted, lambda *_: place)
    if python is None:
        return None, refusals
    return FrozenRuntime(python=str(python), readable=_outermost(folders)), []


def system_exposure(place: Path) -> str | None:
    """Return the folder, readable inside every boundary, that a place lies in; None when there is none."""
    return next((folder for folder in _SYSTEM_FOLDERS if place.is_relative_to(folder)), None)


def _interpreter(wanted: str, at: Place) -> tuple[Path | None, list[Path], list[Refusal]]:
    place = at("runtime", "python")
    if wanted == _AUTO:
        base = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
        return base, _needed(base, [sys.base_prefix]), []
    python = Path(wanted)
    if not python.is_absolute() or not os.access(python, os.X_OK) or python.is_dir():
        return None, [], [_no_interpreter(f"{wanted!r} is not an executable file", place)]
    try:
        answer = run([python, "-I", "-c", _ASK_PREFIXES], timeout_s=_ASK_TIMEOUT_S, env={"PATH": os.defpath})
    except (CommandFailed, OSError) as error:
        return None, [], [_no_interpreter(f"{wanted!r} does not start: {error}", place)]
    try:
        prefix, base_prefix, base = json.loads(answer.stdout)
    except (ValueError, TypeError):
        return None, [], [_no_interpreter(f"{wanted!r} does not answer as a Python interpreter", place)]
    real = Path(base).resolve()
    return python, _needed(real, [prefix, base_prefix]), []


def _no_interpreter(why: str, place: str) -> Refusal:
    remedy = "give the absolute path of a Python interpreter, or `auto`"
    return Refusal("interpreter-missing", why, place, remedy)


def _needed(base: Path, prefixes: Sequence[str]) -> list[Path]:
    """Return the folders outside the system's own that an interpreter needs."""
    folders = [Path(prefix).resolve() for prefix in prefixes]
    if not any(base.is_relative_to(folder) for folder in [*folders, _SYSTEM]):
        folders.append(base.parent)
    return [folder for folder in folders if not folder.is_relative_to(_SYSTEM)]


def _outermost(folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the folders without those that lie in another one, in the order given."""
    kept = [
        folder
        for folder in dict.fromkeys(folders)
        if not any(other != folder and folder.is_relative_to(other) for other in folders)
    ]
    return tuple(map(str, kept))


def _exposures(folder: Path, keep_out: Sequence[Path], place: str) -> Iterator[Refusal]:
    for private in keep_out:
        if private.is_relative_to(folder):
            yield Refusal(
                "readable-exposes",
                f"{folder} holds {private}, which no candidate may see",
                place,
                "name a narrower folder",
            )
