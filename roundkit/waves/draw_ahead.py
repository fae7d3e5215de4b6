"""Draws beside the drafting: one at a time in a thread of its own, so that no agent waits for one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from roundkit.rules.wave_draw import DRAW_FAILED
from roundkit.waves.command import CommandProblem
from roundkit.waves.draw import Banked, Drawn, draw, may_draw
from roundkit.waves.folder import CampaignFolder

_TRIES = 3
_RETRY_S = 1.0
_SAID_LINES = 3


class DrawAhead:
    """Draws the next wave when it is asked to, and knows when there is nothing more to draw.

    Args:
        folder: The campaign.
        banked: Tells what the tree's commits bank.
        woken: Called from the thread when a draw has ended.

    Attributes:
        final: Why nothing more will be drawn; null while something may be.
        waits: What a drafter without work waits for.
    """

    def __init__(self, folder: CampaignFolder, banked: Banked, woken: Callable[[], None]) -> None:
        self.final: str | None = None
        self.waits = "the first draw"
        self._folder = folder
        self._banked = banked
        self._woken = woken
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="draw")
        self._future: Future[Drawn] | None = None
        self._failures = 0
        self._not_before_s = 0.0
        self._gated = 0
        self._exhausted_at: int | None = None
        self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)

    @property
    def is_busy(self) -> bool:
        """Whether a draw is going on, or was not taken yet."""
        return self._future is not None

    def request(self) -> None:
        """See to it that a wave is drawn, where one may be now."""
        if self.is_busy or self.final is not None or time.monotonic() < self._not_before_s:
            return
        reason = may_draw(self._folder)
        if reason == "queue":
            self.waits = "the gater: as many waves wait for it as the plan allows"
        elif reason is not None:
            self.final = reason
        elif self._exhausted_at == len(self._folder.gated()):
            self.waits = "the gater: every open target is in a wave"
        else:
            self.waits = "a draw"
            self._gated = len(self._folder.gated())
            self._future = self._pool.submit(draw, self._folder, self._banked, self._stop_read)
            self._future.add_done_callback(lambda _: self._woken())

    def taken(self, say: Callable[[str], None]) -> Drawn | None:
        """Return what a draw came to once it has ended; null while there is none.

        A draw that failed is tried again a few times, later each time.

        Args:
            say: Takes a line about one that failed.

        Raises:
            ConfinementUnavailable: the host cannot confine the campaign's command.
            OSError: the disk is full, or something cannot be read.
        """
        if self._future is None or not self._future.done():
            return None
        future, self._future = self._future, None
        try:
            drawn = future.result()
        except CommandProblem as problem:
            if problem.end_reason == "stopped":
                return None
            self._failures += 1
            self._not_before_s = time.monotonic() + _RETRY_S * 2**self._failures
            said = " | ".join(problem.said.strip().splitlines()[-_SAID_LINES:])
            say(f"draw failed ({self._failures} of {_TRIES}): {problem}{': ' + said if said else ''}")
            self.waits = "another try of the draw that failed"
            self.final = DRAW_FAILED if self._failures >= _TRIES else None
            return None
        self._failures = 0
        if drawn.reason == "exhausted":
            self._exhausted_at = self._gated
            in_flight = set(self._folder.tags()) - self._folder.gated()
            self.final = None if in_flight else "exhausted"
        elif drawn.reason not in {None, "queue"}:
            self.final = drawn.reason
        return drawn

    def end_now(self) -> None:
        """End a draw that is going on."""
        with suppress(OSError):
            os.write(self._stop_write, b"x")

    def close(self) -> None:
        """Wait for the thread and let go of what it needed."""
        self._pool.shutdown(wait=True)
        for fd in (self._stop_read, self._stop_write):
            os.close(fd)
