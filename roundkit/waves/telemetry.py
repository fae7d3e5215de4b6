"""What a wave used: its agents' request events, the machine's memory, the credit that is left."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psutil
from pydantic import ValidationError

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, openat2
from roundkit.core.canonical import parse_json
from roundkit.core.errors import Refused, RoundkitError
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_calls import CreditAnswer, CreditRequest
from roundkit.models.wave_records import Shard
from roundkit.models.wave_traffic import RequestEvent
from roundkit.rules.wave_traffic import Memory
from roundkit.waves.agent_place import agent_network, inherited_values
from roundkit.waves.command import Call, ask_command
from roundkit.waves.folder import CampaignFolder

_CHUNK_BYTES = 1 << 18
_MOST_LINE_BYTES = 1 << 14
_RESOLVE = BENEATH | NO_SYMLINKS | NO_MAGICLINKS


@dataclass(frozen=True)
class Credit:
    """What is left to spend, in USD; null with the reason why nobody knows."""

    usd: float | None
    reason: str | None


def read_credit(folder: CampaignFolder, *, purpose: str) -> Credit:
    """Ask how much credit is left. Whatever goes wrong is a reason, and never an error.

    Args:
        folder: The campaign.
        purpose: Who asks; two at once have folders of their own.
    """
    plan = folder.plan.plan
    if plan.credit is None:
        return Credit(None, "the plan names no command that tells it")
    try:
        answer = ask_command(
            folder,
            Call(
                name="credit",
                command=plan.credit,
                request=CreditRequest(campaign_id=plan.campaign_id),
                folder=folder.at(names.DRAWS) / f"credit-{purpose}",
                limits=plan.gate.limits,
                network=agent_network(folder.plan),
                environment={**plan.draft.agent.environment, **inherited_values(folder.plan, os.environ)},
            ),
            CreditAnswer,
        )
    except (RoundkitError, OSError) as error:
        return Credit(None, f"it cannot be read: {error}")
    return Credit(
        answer.usd, None if answer.usd is not None else answer.reason or "its command does not know"
    )


def read_memory() -> Memory:
    """Return the machine's memory; null for what cannot be read."""
    return Memory(
        available_bytes=_counter(lambda: psutil.virtual_memory().available),
        swap_used_bytes=_counter(lambda: psutil.swap_memory().used),
    )


def read_events(folder: CampaignFolder, tag: str) -> list[RequestEvent]:
    """Return the events of one wave that the drafter has collected."""
    wanted = f'"tag":"{tag}"'.encode()
    try:
        with folder.at(names.EVENTS).open("rb") as stream:
            return [event for line in stream if wanted in line and (event := _event(line)) is not None]
    except FileNotFoundError:
        return []


@dataclass
class _Reader:
    """One shard's own file: untrusted, and read as it grows.

    Attributes:
        folder: Where it lies; its agent may have put anything there.
        shard: Whose it is.
        skip: Events that an earlier drafter collected already.
        turns: Answers so far; as nothing is ever taken back from a file that was read, they only grow.
        micro_usd: What those told of their cost.
    """

    folder: Path
    shard: Shard
    skip: int
    offset: int = 0
    rest: bytes = b""
    bad_lines: int = 0
    overlong: bool = False
    turns: int = 0
    micro_usd: int = 0
    events: list[RequestEvent] = field(default_factory=list)

    def read(self, until_s: float) -> Iterator[RequestEvent]:
        """Yield the next events that nobody has collected; an amount at a time."""
        *lines, self.rest = (self.rest + self._chunk()).split(b"\n")
        for line in lines:
            yield from self._take(line, until_s)
        if len(self.rest) > _MOST_LINE_BYTES:
            self.rest, self.overlong = b"", True

    def end(self) -> None:
        """Count a line that was begun and not ended."""
        self.bad_lines += bool(self.rest or self.overlong)
        self.rest, self.overlong = b"", False

    def _take(self, line: bytes, until_s: float) -> Iterator[RequestEvent]:
        event = None if self.overlong or len(line) > _MOST_LINE_BYTES else _event(line)
        self.overlong = False
        if event is None or not self._is_its_own(event, until_s):
            self.bad_lines += 1
            return
        self.events.append(event)
        self.turns += event.event == "answer"
        self.micro_usd += event.micro_usd or 0
        if self.skip:
            self.skip -= 1
        else:
            yield event

    def _is_its_own(self, event: RequestEvent, until_s: float) -> bool:
        shard = self.shard
        named = (event.tag, event.shard, event.model) == (shard.tag, shard.index, shard.model)
        return named and shard.started_utc.timestamp() <= event.at_s <= until_s

    def _chunk(self) -> bytes:
        with suppress(OSError):
            top = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                handle = openat2(
                    top, names.REQUEST_EVENTS, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, _RESOLVE
                )
            finally:
                os.close(top)
            try:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    chunk = os.pread(handle, _CHUNK_BYTES, self.offset)
                    self.offset += len(chunk)
                    return chunk
            finally:
                os.close(handle)
        return b""


class EventCollector:
    """Brings the events of running shards into the campaign's append-only file.

    Args:
        folder: The campaign.
        now_s: The clock, in seconds since the epoch.
    """

    def __init__(self, folder: CampaignFolder, now_s: Callable[[], float]) -> None:
        self._folder = folder
        self._now_s = now_s
        self._readers: dict[tuple[str, int], _Reader] = {}
        self._unsaved: list[bytes] = []

    def follow(self, shard: Shard, *, skip: int = 0) -> None:
        """Begin to follow a shard.

        Args:
            shard: The shard.
            skip: Its events that are in the campaign's file already.
        """
        requests = self._folder.shard(shard.tag, shard.index) / names.REQUESTS
        self._readers[shard.tag, shard.index] = _Reader(requests, shard, skip)

    def collect(self) -> None:
        """Take what there is now.

        Raises:
            OSError: the campaign's file cannot be written; nothing is lost, the next call tries again.
        """
        for reader in self._readers.values():
            self._keep(reader.read(self._now_s()))
        self._save()

    def finish(self, shard: Shard, ended_utc: datetime | None = None) -> list[RequestEvent]:
        """Take the last events of a shard whose agent has ended, and return all that it had.

        Args:
            shard: The shard.
            ended_utc: When nothing of its agent was left, so that no event is of later; null where nobody saw
                that.

        Raises:
            OSError: as for :meth:`collect`.
        """
        reader = self._readers[shard.tag, shard.index]
        before = -1
        while reader.offset != before:
            before = reader.offset
            until_s = self._now_s() if ended_utc is None else ended_utc.timestamp()
            self._keep(reader.read(until_s))
        reader.end()
        self._save()
        return reader.events

    def used(self, shard: Shard) -> tuple[int, int]:
        """Return how many turns a shard has told of by now, and what they cost at least, in micro-USD."""
        reader = self._readers[shard.tag, shard.index]
        return reader.turns, reader.micro_usd

    def of_wave(self, tag: str) -> tuple[list[RequestEvent], int]:
        """Return a wave's events so far, and how many lines were none."""
        readers = [reader for (wave, _), reader in self._readers.items() if wave == tag]
        return [event for reader in readers for event in reader.events], sum(one.bad_lines for one in readers)

    def forget(self, tag: str) -> None:
        """Let go of a wave of which nothing runs any more."""
        self._readers = {key: reader for key, reader in self._readers.items() if key[0] != tag}

    def _keep(self, events: Iterable[RequestEvent]) -> None:
        self._unsaved += [event.to_bytes() + b"\n" for event in events]

    def _save(self) -> None:
        if self._unsaved:
            append(self._folder.at(names.EVENTS), b"".join(self._unsaved))
            self._unsaved.clear()


def append(path: Path, lines: bytes) -> None:
    """Append whole lines to a file that only grows, or nothing.

    Raises:
        OSError: there is no room for all of them.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        # What a killed process left of its last line must not become the start of this one.
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        waiting = memoryview(b"\n" + lines if torn else lines)
        try:
            while waiting:
                waiting = waiting[os.write(descriptor, waiting) :]
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _event(line: bytes) -> RequestEvent | None:
    try:
        parse_json(line, place=names.REQUEST_EVENTS, writable=True)
        return RequestEvent.model_validate_json(line)
    except (ValidationError, Refused):
        return None


def _counter(read: Callable[[], int]) -> int | None:
    try:
        return int(read())
    except (OSError, AttributeError, RuntimeError):
        return None
