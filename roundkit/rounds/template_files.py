"""Plans made from options on the command line: the shipped templates, filled in and checked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from roundkit.core.errors import Refusal, Refused
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import plain, read_yaml, schema_refusals
from roundkit.measure.boundary import CHECKOUT
from roundkit.models.campaign import CampaignPlan
from roundkit.rounds.prepare_runtime import find_runtime
from roundkit.rules.scope import campaign_commands

CHECKOUT_PATH = f"{CHECKOUT}:{CHECKOUT / 'src'}"
"""PYTHONPATH with which a benchmark from outside finds the program in the checkout that it runs on."""

_INSIDE = f"{CHECKOUT.parent}/"
_SYSTEM = ("/usr/", "/bin/", "/lib")


def template(name: str) -> dict[str, Any]:
    """Return the content of a shipped template as plain values."""
    content: dict[str, Any] = plain(read_yaml(shipped("templates") / name)[1])
    return content


def words_inside(root: Path, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command with paths as it will find them inside, and the folders outside that it reads.

    A program of a virtual environment stays one: its path is kept, and the whole environment is read.

    Args:
        root: The folder whose copy the command runs in; absolute paths into it become relative.
        argv: The command as a person writes it.
    """
    words: list[str] = []
    folders: list[str] = []
    for word in argv:
        path = Path(word)
        if not path.is_absolute() or not path.exists():
            words.append(word)
        elif environment := _environment_of(path):
            words.append(str(path.parent.resolve() / path.name))
            folders.extend(environment)
        elif path.resolve().is_relative_to(root):
            words.append(path.resolve().relative_to(root).as_posix())
        else:
            words.append(str(path.resolve()))
            folders.append(str(path.resolve() if path.is_dir() else path.resolve().parent))
    return words, sorted({folder for folder in folders if not f"{folder}/".startswith(_SYSTEM)})


def _environment_of(program: Path) -> tuple[str, ...]:
    """Return what a program of a virtual environment reads; empty for any other path.

    Its interpreter is a link to the one that it was made with, which knows none of its packages.
    """
    folder = program.parent.resolve()
    if not (folder.parent / "pyvenv.cfg").is_file():
        return ()
    runtime, _ = find_runtime(str(folder / "python"), "a virtual environment")
    return () if runtime is None else runtime.readable


def program_refusals(campaign: CampaignPlan, place: Callable[..., str]) -> Iterator[Refusal]:
    """Yield a refusal for each command whose program this machine does not have.

    Args:
        campaign: The commands and the PATH that they get.
        place: Names the option that the keys of a command come from.
    """
    search = campaign.environment.get("PATH", os.defpath)
    for keys, argv in campaign_commands(campaign):
        program = argv[0]
        if "{" in program:
            continue
        if "/" not in program and shutil.which(program, path=search) is None:
            yield Refusal(
                "command-missing",
                f"there is no program {program!r} in {search}",
                place(*keys),
                "name it by its absolute path, or write {python} for the Python interpreter",
            )
        elif program.startswith("/") and not program.startswith(_INSIDE) and not Path(program).exists():
            yield Refusal(
                "command-missing",
                f"there is no program {program}",
                place(*keys),
                "correct the path, or install it",
            )


def checked_campaign(content: dict[str, Any], what: str) -> CampaignPlan:
    """Check what options made of the template, before anything is written or run.

    Args:
        content: The campaign.
        what: What to call it in an error.

    Raises:
        Refused: an option has a value that no campaign can have.
    """
    try:
        return CampaignPlan.model_validate_json(json.dumps(content).encode(), strict=True)
    except ValidationError as error:
        raise Refused(schema_refusals(error.errors(), content, what)) from error
