"""What a person does next: a line or two after each command of a round's way."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from roundkit.core.clock import is_expired, now_utc
from roundkit.core.text import visible

if TYPE_CHECKING:
    # For annotations only: a page of help must not wait for the models.
    from roundkit.models.lane import LaunchLane
    from roundkit.rounds.close import CloseOutcome
    from roundkit.rounds.control import RoundStatus
    from roundkit.rounds.propose import Draft

_FIRST = "once something is handed over, measure it"


def say_next(words: str, *commands: Sequence[str | Path], stderr: bool = False) -> None:
    """Print what comes next, each command on a line of its own; nothing to a program that started this one.

    Args:
        words: What to do; empty where the commands say it all.
        commands: Words of commands, as they can be pasted.
        stderr: For commands whose output goes into a file.
    """
    from roundkit.rounds.background import UNATTENDED

    if UNATTENDED in os.environ:
        return
    typer.echo(visible(f"next: {words}".rstrip()), err=stderr)
    for command in commands:
        typer.echo(visible(f"  {shlex.join(map(str, command))}"), err=stderr)


def after_doctor() -> None:
    """After a machine that holds candidates."""
    say_next("rounds run here; begin at the top of your repository", ["roundkit", "init"])


def after_draft(campaign: Path, draft: Draft, asked: int) -> None:
    """After a draft that was printed: what it has no lane for, and why; its comments say so too."""
    if draft.lanes < asked:
        typer.echo(f"{draft.lanes} of {asked} lanes: no more entries of the search plan fit", err=True)
    for left in draft.left_out:
        typer.echo(visible(f"left out: {left.entry}: {left.why}"), err=True)
    written, out = campaign.with_name("round.yaml"), Path("..", draft.round_id)
    say_next(
        f"look through the draft, fill what is `yours to`, keep it as {written}, then",
        ["roundkit", "prepare", "--campaign", campaign, "--round", written, "--out", out],
        stderr=True,
    )


def after_prepare(folder: Path, digest: str) -> None:
    """After a round was frozen."""
    say_next("post the digest, then", ["roundkit", "launch", folder, "--digest", digest])


def after_launch(folder: Path, lanes: Sequence[LaunchLane], status: RoundStatus) -> None:
    """After clones were made that nobody has begun to fill; work in those of a closed round leads nowhere."""
    if status.closing.begun:
        typer.echo(f"round {status.plan.round_id} {_ended(status)}: nothing more is measured for its lanes")
        after_look(folder, status)
        return
    for lane in lanes:
        if lane.harness == "none":
            typer.echo(visible(f"{lane.id} is a person's: {lane.hypothesis}"))
            typer.echo(visible(f"  change {', '.join(lane.globs)} there; in that folder, hand over with"))
            typer.echo(visible(f"  {shlex.join(['.roundkit/round', 'submit'])}"))
    driven = sorted({lane.harness for lane in lanes if lane.harness != "none"})
    if driven:
        say_next(f"fill the lanes of {', '.join(driven)}", ["roundkit", "launch", folder, "--drive", "all"])
    say_next(_FIRST, ["roundkit", "serve", folder, "--until-idle"])


def _ended(status: RoundStatus) -> str:
    return f"was {status.closing.sentence()}" if status.closing.finished else "is being closed"


def after_serve(folder: Path, status: RoundStatus, pool: Sequence[str | Path]) -> None:
    """After a serve that ended; while something waits, or nothing was ever handed over, as after a look.

    Args:
        folder: The round.
        status: How it stands now.
        pool: The options that said who measures; ``close`` measures there too.
    """
    if not status.tickets or _waits(status):
        after_look(folder, status, pool)
        return
    say_next(
        "look, submit more and serve again, or end the round",
        ["roundkit", "status", folder],
        ["roundkit", "close", folder, *pool],
    )


def _waits(status: RoundStatus) -> bool:
    return bool(status.handed_over) or any(
        state.state in {"queued", "measuring"} for _, state in status.tickets
    )


def after_close(folder: Path, closed: CloseOutcome) -> None:
    """After a round was closed."""
    evidence = closed.evidence
    say_next(
        "show it, let others check it with the index that you post",
        ["roundkit", "report", evidence, "--out", folder / "report.html"],
        ["roundkit", "audit", evidence, "--expect", closed.index_digest],
    )
    if closed.new_incumbent:
        _merge(closed.ledger.round_id)


def _merge(round_id: str) -> None:
    say_next("in your repository, take what the round kept", ["git", "merge", f"roundkit/{round_id}"])


def after_look(folder: Path, status: RoundStatus, pool: Sequence[str | Path] = ()) -> None:
    """Where somebody looks at a round; nothing while it goes on by itself, or its table says how it does."""
    closing, served = status.closing, status.serve is not None
    serve: Sequence[str | Path] = ["roundkit", "serve", folder, "--until-idle", *pool]
    resume: Sequence[str | Path] = ["roundkit", "resume", folder]
    close: Sequence[str | Path] = ["roundkit", "close", folder, *pool]
    if closing.finished:
        after_end(folder, status)
    elif closing.running is not None:
        return
    elif closing.begun:
        say_next("let close go on", close)
    elif is_expired(status.plan.deadline_utc, now_utc()):
        if not served:
            say_next("the round's deadline has passed: end it", close)
    elif status.paused is not None:
        say_next("once what paused it is mended", *([resume] if served else [resume, serve]))
    elif served:
        return
    elif _waits(status):
        say_next("measure what is handed over", serve)
    elif status.tickets:
        say_next("submit more and serve again, or end the round", serve, close)
    elif not status.launched:
        say_next("make the lanes", ["roundkit", "launch", folder, "--digest", status.plan.digest()])
    else:
        say_next(_FIRST, serve)


def after_end(folder: Path, status: RoundStatus) -> None:
    """Where somebody looks at a round that is closed."""
    from roundkit.rounds.layout import evidence_folder

    evidence, index = evidence_folder(status.plan), status.closing.index_digest or ""
    typer.echo(visible(f"evidence {evidence}, index {index}"))
    say_next(
        "show it, let others check it, then free the disk",
        ["roundkit", "report", evidence, "--out", folder / "report.html"],
        ["roundkit", "audit", evidence, "--expect", index],
        ["roundkit", "prune", folder],
    )
    if status.closing.advanced:
        _merge(status.plan.round_id)
