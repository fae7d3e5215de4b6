"""A wave campaign's folder: where everything lies, and what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from roundkit.core.errors import Refused, refuse, system_refusal
from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.models.base import Record
from roundkit.models.wave_plan import WavePlan
from roundkit.models.wave_records import (
    Dealt,
    Drafted,
    LedgerRow,
    Shard,
    ShardEnd,
    Wave,
)

_TAG = re.compile(r"[0-9]{4,}\Z")
_NUMBER = re.compile(r"[0-9]{4,}\Z")

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class CampaignFolder:
    """The folder of one campaign.

    Attributes:
        root: The folder, absolute and free of links.
    """

    root: Path

    @cached_property
    def plan(self) -> WavePlan:
        """The frozen plan.

        Raises:
            Refused: ``no-campaign``: there is none; ``not-permitted``: this user may not read it.
        """
        try:
            data = (self.root / names.PLAN).read_bytes()
        except PermissionError as error:
            raise Refused(system_refusal(error)) from error
        except OSError as error:
            raise refuse(
                "no-campaign",
                f"{self.root} holds no frozen campaign: {error.strerror}",
                place=str(self.root),
                remedy="freeze one: `roundkit waves run wave-plan.yaml --dir WAVE_DIR`",
            ) from error
        try:
            return WavePlan.from_bytes(data, place=names.PLAN)
        except ValidationError as error:
            raise refuse(
                "no-campaign",
                f"{names.PLAN} is no frozen plan: {error.errors()[0]['msg']}",
                place=str(self.root / names.PLAN),
                remedy="put back what `roundkit waves run` froze",
            ) from error

    @cached_property
    def plan_sha256(self) -> str:
        """The plan's digest."""
        return self.plan.digest()

    @property
    def tools(self) -> Path:
        """The campaign's own programs, as they were frozen."""
        return self.root / names.TOOLS

    @property
    def tree(self) -> Path:
        """The working tree that banked work is committed to."""
        return Path(self.plan.plan.tree)

    def at(self, name: str) -> Path:
        """Return where something lies that has its name in :mod:`roundkit.evidence.wave_layout`."""
        return self.root / name

    def wave(self, tag: str) -> Path:
        """Return a wave's folder."""
        return self.root / names.wave_folder(tag)

    def shard(self, tag: str, index: int) -> Path:
        """Return a shard's folder."""
        return self.root / names.shard_folder(tag, index)

    def tags(self) -> list[str]:
        """Return the tag of every wave that was drawn, in order."""
        folder = self.root / names.WAVES
        if not folder.is_dir():
            return []
        found = [path.name for path in folder.iterdir() if _TAG.match(path.name)]
        return sorted((tag for tag in found if (folder / tag / names.WAVE).exists()), key=int)

    def read_wave(self, tag: str) -> Wave:
        """Return a drawn wave.

        Raises:
            Refused: ``no-wave``: there is none of that tag.
        """
        wave = read_record(self.wave(tag) / names.WAVE, Wave) if _TAG.match(tag) else None
        if wave is None:
            raise refuse(
                "no-wave", f"{self.root} has no wave {tag}", remedy="`roundkit waves status` lists them"
            )
        return wave

    def dealt(self, tag: str) -> Dealt | None:
        """Return how a wave was shared out, null where it was not yet."""
        return read_record(self.wave(tag) / names.DEALT, Dealt)

    def drafted(self, tag: str) -> Drafted | None:
        """Return the marker with which a wave was handed on, null where it was not yet."""
        return read_record(self.wave(tag) / names.DRAFTED, Drafted)

    def shards(self, tag: str) -> Iterator[tuple[Shard, ShardEnd | None]]:
        """Yield each shard of a wave that was started, with its end once it has one."""
        folder = self.wave(tag) / names.SHARDS
        if not folder.is_dir():
            return
        for path in sorted(path for path in folder.iterdir() if _NUMBER.match(path.name)):
            shard = read_record(path / names.SHARD, Shard)
            if shard is not None:
                yield shard, read_record(path / names.END, ShardEnd)

    def ledger(self) -> list[LedgerRow]:
        """Return the rows of the ledger; a line that a killed process left half-written is none."""
        try:
            lines = (self.root / names.LEDGER).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [row for line in lines if (row := _parsed(line, LedgerRow)) is not None]

    def gated(self) -> set[str]:
        """Return the tags of the waves that have their row in the ledger."""
        return {row.tag for row in self.ledger() if row.mode == "wave"}


def open_campaign(root: Path, *, changed_too: bool = False) -> CampaignFolder:
    """Return the folder of a frozen campaign.

    Args:
        root: The folder.
        changed_too: Whether also one whose plan was edited since, to stop it.

    Raises:
        Refused: ``no-campaign``; ``plan-changed``: its waves were drawn by another plan.
    """
    folder = CampaignFolder(root.resolve())
    _ = folder.plan
    if not changed_too:
        check_plan(folder)
    return folder


def check_plan(folder: CampaignFolder) -> None:
    """Check that the plan still is what earlier waves were drawn by.

    Raises:
        Refused: ``plan-changed``.
    """
    for tag in folder.tags()[-1:]:
        if folder.read_wave(tag).plan_sha256 != folder.plan_sha256:
            raise refuse(
                "plan-changed",
                f"wave {tag} was drawn by another plan than this is now",
                place=str(folder.at(names.PLAN)),
                remedy="put the frozen plan back, or freeze the campaign anew in another folder",
            )


def read_record(path: Path, model: type[R]) -> R | None:
    """Return a record, null where its file is not there yet.

    Raises:
        Refused: ``malformed``: the file is no such record.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return model.from_bytes(data, place=str(path))
    except ValidationError as error:
        raise refuse("malformed", f"it is no {model.__name__}: {error}", place=str(path)) from error


def write_once(path: Path, record: Record) -> None:
    """Write a record that is written once; its folder has one writer, who holds a lock.

    Raises:
        FileExistsError: it is there already.
    """
    if path.exists():
        raise FileExistsError(f"{path} is written once")
    atomic_write(path, record.to_bytes())


def _parsed(line: bytes, model: type[R]) -> R | None:
    try:
        return model.model_validate_json(line, strict=True)
    except ValidationError:
        return None
