"""The kinds of pilots: which module does what ``roundkit pilot`` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from roundkit.core.errors import refuse
from roundkit.core.progress import Progress
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.pilots.folder import frozen_kind

_MODULES = {"paired": "roundkit.pilots.paired", "policy": "roundkit.pilots.policy.kind"}


@dataclass(frozen=True)
class Report:
    """What a command has to say at its end.

    Attributes:
        lines: For people.
        failed: Whether the work failed its purpose.
    """

    lines: tuple[str, ...]
    failed: bool = False


class Kind(Protocol):
    """What a kind's module offers; each of them may refuse."""

    def prepare(self, draft_file: Path, out: Path, progress: Progress) -> Report:
        """Freeze a pilot into a folder."""

    def run(self, root: Path, only: str | None, setup: str | None, progress: Progress) -> Report:
        """Run what is left of it, or a part: a tuple, an arm and a repetition, a setup attempt."""

    def status(self, root: Path) -> Report:
        """Say how it stands."""


def kind_of_draft(draft_file: Path) -> Kind:
    """Return what handles the pilot that a YAML file describes.

    Raises:
        Refused: ``missing-file``, ``malformed-yaml``, ``unknown-kind``.
    """
    _, content = read_yaml(draft_file)
    value = plain(content)
    return _module(value.get("kind") if isinstance(value, dict) else None, str(draft_file))


def kind_of_folder(root: Path) -> Kind:
    """Return what handles a frozen pilot.

    Raises:
        Refused: ``no-pilot``, ``unknown-kind``.
    """
    return _module(frozen_kind(root), str(root))


def _module(kind: object, place: str) -> Kind:
    if not isinstance(kind, str) or kind not in _MODULES:
        raise refuse(
            "unknown-kind",
            "it names no kind of pilot" if kind is None else f"there is no kind {kind!r} of pilot",
            place=place,
            remedy=f"write one of {', '.join(f'kind: {name}' for name in _MODULES)}",
        )
    return cast("Kind", import_module(_MODULES[kind]))
