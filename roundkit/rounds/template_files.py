"""Plans made from options on the command line: the shipped templates, filled in and checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from roundkit.core.errors import Refused
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import plain, read_yaml, schema_refusals
from roundkit.measure.boundary import CHECKOUT
from roundkit.models.campaign import CampaignPlan

CHECKOUT_PATH = f"{CHECKOUT}:{CHECKOUT / 'src'}"
"""PYTHONPATH with which a benchmark from outside finds the program in the checkout that it runs on."""

_SYSTEM = ("/usr/", "/bin/", "/lib")


def template(name: str) -> dict[str, Any]:
    """Return the content of a shipped template as plain values."""
    content: dict[str, Any] = plain(read_yaml(shipped("templates") / name)[1])
    return content


def words_inside(root: Path, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command with paths as it will find them inside, and the folders outside that it reads.

    Args:
        root: The folder whose copy the command runs in; absolute paths into it become relative.
        argv: The command as a person writes it.
    """
    words, folders = [], []
    for word in argv:
        path = Path(word)
        if not path.is_absolute() or not path.exists():
            words.append(word)
        elif path.resolve().is_relative_to(root):
            words.append(path.resolve().relative_to(root).as_posix())
        else:
            words.append(str(path.resolve()))
            folders.append(str(path.resolve() if path.is_dir() else path.resolve().parent))
    return words, sorted({folder for folder in folders if not f"{folder}/".startswith(_SYSTEM)})


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
