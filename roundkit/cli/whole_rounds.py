"""Whole journeys in one command: the demo round, and a round from a stack of commits."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.options import command_words, even_pairs
from roundkit.cli.progress import shown_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roundkit.core.progress import Progress
    from roundkit.models.ledger import RoundLedger
    from roundkit.rounds.close import CloseOutcome


@app.command(rich_help_panel="Start here")
def demo(
    out: Annotated[Path, typer.Option(help="Folder to work in; an earlier demo in it is replaced.")] = Path(
        "demo"
    ),
    python: Annotated[
        str, typer.Option(help="Interpreter of the program; auto: the one behind roundkit.")
    ] = "auto",
) -> None:
    """Run one whole round on a real program, from lanes of every kind to an audited HTML report.

    The program is a small code search that ships with roundkit; its eight lanes are patches, honest ones and
    cheats. It takes some minutes and spends nothing. Run again, it begins anew.

    Examples:
        roundkit demo
        roundkit demo --out /tmp/demo --python /usr/bin/python3

    Exit codes:
        0: every lane came out as expected, and the evidence audits
        1: one did not, or it was interrupted

    Files:
        OUT/report.html: The report, one offline file.
        OUT/campaign/evidence: The evidence that the report is made from.

    Interrupted:
        the next run begins anew in the same folder
    """
    from roundkit.cli.tables import demo_table, percent
    from roundkit.rounds.demo import run_demo

    with shown_progress() as progress:
        outcome = run_demo(out, progress=progress, python=python)
        page = outcome.folder / "report.html"
        agrees = _publish(outcome.closed, outcome.folder / "program", page, progress)
    demo_table(outcome.rows)
    ledger = outcome.closed.ledger
    gain = f"a fresh rerun gives {percent(ledger.gain)}" if ledger.advanced else "the incumbent stays"
    typer.echo(f"round closed: {gain}. {ledger.statement}")
    _tell(outcome.closed, page, agrees=agrees)
    if not (outcome.succeeded and agrees):
        raise typer.Exit(1)


_COMMANDS, _MEASURED = "What is run", "How it is measured"
# A hundred years: a time that ends beyond the calendar's last year is none.
_MOST_HOURS = 876000


@app.command(rich_help_panel="Start here")
def replay(
    span: Annotated[str, typer.Argument(metavar="BASE..HEAD", help="The incumbent, and the last commit.")],
    benchmark: Annotated[
        str,
        typer.Option(
            help="Benchmark command, one program and its words, relative to the repository; for more, "
            "sh -c '…'.",
            rich_help_panel=_COMMANDS,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder to make for the round and its report; outside the repository.")
    ],
    repository: Annotated[Path, typer.Option(help="The git repository.")] = Path(),
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric that the benchmark writes to ROUNDKIT_RESULT_PATH; else wall time counts.",
            rich_help_panel=_MEASURED,
        ),
    ] = None,
    build: Annotated[
        str | None, typer.Option(help="Build command, run once a checkout.", rich_help_panel=_COMMANDS)
    ] = None,
    instrument: Annotated[
        str | None,
        typer.Option(
            help="What counts without --metric: wall (the default), cpu or another one.",
            rich_help_panel=_MEASURED,
        ),
    ] = None,
    validator: Annotated[
        str | None,
        typer.Option(
            help="Command that exits 0 when what a trial left in ROUNDKIT_OUTPUT_DIR is right.",
            rich_help_panel=_COMMANDS,
        ),
    ] = None,
    package: Annotated[
        str | None,
        typer.Option(
            help="The package whose import must come from the measured checkout.", rich_help_panel=_COMMANDS
        ),
    ] = None,
    protect: Annotated[
        list[str] | None,
        typer.Option(help="Glob that no commit may change; may be repeated.", rich_help_panel=_COMMANDS),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=6,
            callback=even_pairs,
            help="Pairs of one experiment; even, at least 6.",
            rich_help_panel=_MEASURED,
        ),
    ] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Smallest gain that is kept, a fraction.", rich_help_panel=_MEASURED
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds that one trial may take.", rich_help_panel=_MEASURED),
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, max=_MOST_HOURS, help="Hours until the round's deadline.")
    ] = 12.0,
) -> None:
    r"""Which of these commits gave the speed-up, and do they add up? A whole round from a range of commits.

    Commits that touch the same files form one lane. The campaign and round files that are written to OUT
    can be edited and prepared again by hand.

    Examples:
        roundkit replay v1.0..v1.1 --benchmark "python3 bench.py" --out ../replayed
        # The last five commits of another repository, which is built first
        roundkit replay HEAD~5..HEAD --repository ../compressor --out ../replayed \
            --build "make -s" --benchmark "./bench"

    Exit codes:
        0: the round is closed and its evidence audits, whatever it decided
        1: it could not be closed, or the audit disagrees, or it was interrupted

    Files:
        OUT/report.html: The report, one offline file.
        OUT/round: The round.
        OUT/evidence: The evidence.

    Interrupted:
        the round stays in OUT/round: `roundkit launch OUT/round --drive replay --with-serve` and then
        `roundkit close OUT/round` go on with it; or name a new folder with --out
    """
    from roundkit.cli.tables import ledger_table
    from roundkit.core.clock import now_utc
    from roundkit.core.errors import refuse
    from roundkit.rounds.compare.instruments import METRICS
    from roundkit.rounds.layout import round_folder
    from roundkit.rounds.prepare import freeze
    from roundkit.rounds.replay import plan_replay
    from roundkit.rounds.replay_files import ReplayOptions
    from roundkit.rounds.straight import run_straight

    base, dots, head = span.partition("..")
    if not dots or not base or not head or head.startswith("."):
        raise typer.BadParameter(f"{span!r} is not of the form BASE..HEAD", param_hint="BASE..HEAD")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise refuse("out-exists", f"{out} is no empty folder", place="--out", remedy="choose a new one")
    if instrument is not None and metric is not None:
        raise typer.BadParameter("--metric is what counts already", param_hint="--instrument")
    known = {str(name): name for name in METRICS}
    if instrument not in {None, *known}:
        raise typer.BadParameter(f"{instrument!r} is none of {', '.join(known)}", param_hint="--instrument")
    options = ReplayOptions(
        benchmark=command_words(benchmark, "--benchmark"),
        metric=metric,
        instrument=known[instrument or "wall"],
        build=command_words(build, "--build") if build is not None else None,
        validator=command_words(validator, "--validator") if validator is not None else None,
        target_package=package,
        protected_paths=tuple(protect or ()),
        pairs=pairs,
        min_gain=min_gain,
        timeout_s=timeout,
        cores=(str(max(os.sched_getaffinity(0))),),
        deadline_utc=now_utc() + timedelta(hours=hours),
    )
    folder, page = round_folder(out / "round"), out / "report.html"
    with shown_progress() as progress:
        with _frozen_or_nothing(out):
            planned = plan_replay(repository, base, head, out, options)
            for lane, commits in planned.commits.items():
                progress.say(f"{lane}: {_short(commits)}")
            for dropped in planned.dropped:
                progress.say(f"not replayed: {_short(dropped.commits)}: {dropped.reason}")
            plan = freeze(planned.campaign_file, planned.round_file, folder.root, progress=progress)
        progress.say(f"round {plan.round_id} frozen, digest {plan.digest()}")
        closed = run_straight(folder, progress=progress)
        agrees = _publish(closed, repository, page, progress)
    ledger_table(closed.ledger, {lane.id: lane.hypothesis for lane in plan.lanes})
    if instrument is None:
        tell_of_cpu(closed.ledger, closed.evidence)
    _tell(closed, page, agrees=agrees)
    if not agrees:
        raise typer.Exit(1)


@contextmanager
def _frozen_or_nothing(out: Path) -> Iterator[None]:
    """Take the round's two files away again where it could not be frozen: the same command can be repeated.

    Args:
        out: Folder that was missing, or empty.
    """
    was_there = out.exists()
    try:
        yield
    except BaseException:
        for name in ("campaign.yaml", "round.yaml"):
            (out / name).unlink(missing_ok=True)
        if not was_there:
            with suppress(OSError):
                out.rmdir()
        raise


def tell_of_cpu(ledger: RoundLedger, evidence: Path) -> None:
    """Say what CPU time would show, where wall-clock time could not tell of some lane.

    Args:
        ledger: A closed round's.
        evidence: What was exported of it; its first A/A check says how far both scatter.
    """
    from roundkit.evidence import open_evidence
    from roundkit.rules.quieter import quieter_than_wall

    verdicts = [ticket.verdict for ticket in ledger.tickets if ticket.verdict is not None]
    if all(verdict.verdict != "not-measured" for verdict in verdicts):
        return
    opened = open_evidence(evidence)
    check = next((record for record in opened.experiments() if record.purpose == "aa"), None)
    if check is None:
        return
    quieter = quieter_than_wall(check, opened.run_spec)
    if quieter is not None:
        for sentence in quieter.words():
            typer.echo(sentence)
        typer.echo("To let it decide, replay anew into another folder with --instrument cpu.")


def _short(commits: Sequence[str]) -> str:
    return ", ".join(commit[:10] for commit in commits)


def _publish(closed: CloseOutcome, repository: Path, page: Path, progress: Progress) -> bool:
    """Audit the evidence and write the report; True when the audit agrees."""
    from roundkit.audit import audit_round
    from roundkit.report import build_report

    audited = audit_round(
        closed.evidence, repository=repository, expect=closed.index_digest, progress=progress
    )
    build_report(closed.evidence, page, progress=progress)
    return audited.passed


def _tell(closed: CloseOutcome, page: Path, *, agrees: bool) -> None:
    typer.echo(f"audit: {'every check passed' if agrees else 'SOME CHECK FAILED'}")
    typer.echo(f"evidence: {closed.evidence}")
    typer.echo(f"report: {page.resolve()}")
