"""Whole journeys in one command: the demo round, and a round from a stack of commits."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app, report_line
from roundkit.cli.options import command_words, even_pairs
from roundkit.cli.tables import demo_table, ledger_table, percent
from roundkit.core.clock import now_utc

if TYPE_CHECKING:
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
    """Run one whole round on a real program, from lanes of every kind to an audited HTML report."""
    from roundkit.rounds.demo import run_demo

    outcome = run_demo(out, report=report_line, python=python)
    demo_table(outcome.rows)
    agrees = _publish(outcome.closed, outcome.folder / "program", outcome.folder / "report.html")
    if not (outcome.succeeded and agrees):
        raise typer.Exit(1)


@app.command(rich_help_panel="Start here")
def replay(
    span: Annotated[str, typer.Argument(metavar="BASE..HEAD", help="The incumbent, and the last commit.")],
    benchmark: Annotated[
        str, typer.Option(help="Benchmark command, as in a shell; relative to the repository.")
    ],
    out: Annotated[
        Path, typer.Option(help="Folder to make for the round and its report; outside the repository.")
    ],
    repository: Annotated[Path, typer.Option(help="The git repository.")] = Path(),
    metric: Annotated[
        str | None,
        typer.Option(help="Metric that the benchmark writes to ROUNDKIT_RESULT_PATH; else wall time counts."),
    ] = None,
    build: Annotated[str | None, typer.Option(help="Build command.")] = None,
    protect: Annotated[
        list[str] | None, typer.Option(help="Glob that no commit may change; may be repeated.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(min=6, callback=even_pairs, help="Pairs of one experiment; even, at least 6."),
    ] = None,
    min_gain: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Smallest gain that is kept, a fraction.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds that one trial may take.")] = None,
    hours: Annotated[float, typer.Option(min=0.01, help="Hours until the round's deadline.")] = 12.0,
) -> None:
    """Which of these commits gave the speed-up, and do they add up? A whole round from a range of commits.

    Commits that touch the same files form one lane. The campaign and round files that are written to OUT
    can be edited and prepared again by hand.

    Example: roundkit replay v1.0..v1.1 --benchmark "python3 bench.py" --out ../replayed
    """
    from roundkit.core.errors import refuse
    from roundkit.rounds.layout import RoundFolder
    from roundkit.rounds.prepare import freeze
    from roundkit.rounds.replay import plan_replay
    from roundkit.rounds.replay_files import ReplayOptions
    from roundkit.rounds.straight import run_straight

    base, dots, head = span.partition("..")
    if not dots or not base or not head or head.startswith("."):
        raise typer.BadParameter(f"{span!r} is not of the form BASE..HEAD", param_hint="BASE..HEAD")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise refuse("out-exists", f"{out} is no empty folder", place="--out", remedy="choose a new one")
    options = ReplayOptions(
        benchmark=command_words(benchmark, "--benchmark"),
        metric=metric,
        build=command_words(build, "--build") if build is not None else None,
        protected_paths=tuple(protect or ()),
        pairs=pairs,
        min_gain=min_gain,
        timeout_s=timeout,
        cores=(str(max(os.sched_getaffinity(0))),),
        deadline_utc=now_utc() + timedelta(hours=hours),
    )
    planned = plan_replay(repository, base, head, out, options)
    for lane, commits in planned.commits.items():
        report_line(f"{lane}: {', '.join(commit[:10] for commit in commits)}")
    for dropped in planned.dropped:
        report_line(f"not replayed: {', '.join(commit[:10] for commit in dropped.commits)}: {dropped.reason}")
    folder = RoundFolder((out / "round").absolute())
    plan = freeze(planned.campaign_file, planned.round_file, folder.root)
    report_line(f"round {plan.round_id} frozen, digest {plan.digest()}")
    closed = run_straight(folder, report=report_line)
    ledger_table(closed.ledger)
    if not _publish(closed, repository, out / "report.html"):
        raise typer.Exit(1)


def _publish(closed: CloseOutcome, repository: Path, page: Path) -> bool:
    """Audit the evidence, write the report, say where both are; True when the audit agrees."""
    from roundkit.audit import audit_round
    from roundkit.report import build_report

    audited = audit_round(closed.evidence, repository=repository, expect=closed.index_digest)
    build_report(closed.evidence, page)
    ledger = closed.ledger
    gain = f"a fresh rerun gives {percent(ledger.gain)}" if ledger.advanced else "the incumbent stays"
    typer.echo(f"round closed: {gain}. {ledger.statement}")
    typer.echo(f"audit: {'every check passed' if audited.passed else 'SOME CHECK FAILED'}")
    typer.echo(f"evidence: {closed.evidence}")
    typer.echo(f"report: {page.absolute()}")
    return audited.passed
