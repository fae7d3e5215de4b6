"""Commands on data frames: what their columns mean, export, and import of other tools' ledgers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.progress import shown_progress

if TYPE_CHECKING:
    from roundkit.analysis.importers.tickets import Frames


class FrameForm(StrEnum):
    """What frames are written as."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


class Foreign(StrEnum):
    """Whose ledgers can be imported."""

    PYPERF = "pyperf"
    HYPERFINE = "hyperfine"
    RESULTS_TSV = "results-tsv"
    OPENEVOLVE = "openevolve"
    JSONL = "jsonl"


class Better(StrEnum):
    """Which way of a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"


@app.command(rich_help_panel="Frames")
def schema(
    table: Annotated[str | None, typer.Argument(help="A frame; without it, all of them are listed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show the columns of a frame with type, unit and meaning."""
    import json

    from roundkit.analysis.columns import ROWS_OF, TABLES
    from roundkit.analysis.exported import known
    from roundkit.analysis.pilot_columns import PILOT_ROWS_OF, PILOT_TABLES
    from roundkit.analysis.wave_columns import WAVE_ROWS_OF, WAVE_TABLES
    from roundkit.cli.tables import plain_table

    tables = {**TABLES, **PILOT_TABLES, **WAVE_TABLES}
    rows_of = {**ROWS_OF, **PILOT_ROWS_OF, **WAVE_ROWS_OF}
    if table is None:
        rows = [{"frame": name, "rows": rows_of[name], "columns": len(tables[name])} for name in tables]
    else:
        rows = [
            {"column": each.name, "type": str(each.dtype), "unit": each.unit, "meaning": each.meaning}
            for each in tables[table if table not in TABLES and table in tables else known(table)]
        ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        plain_table([*rows[0]], [[str(value) for value in row.values()] for row in rows])


@app.command(rich_help_panel="Frames")
def export(
    places: Annotated[
        list[str],
        typer.Argument(metavar="PLACE...", help="Round directories, evidence, exports, folders, globs."),
    ],
    out: Annotated[Path, typer.Option(help="The folder to make; it must not exist.")],
    form: Annotated[FrameForm, typer.Option("--format", help="What to write.")] = FrameForm.PARQUET,
    table: Annotated[list[str] | None, typer.Option(help="Only this frame; may be repeated.")] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out what cannot be read, and say so.")
    ] = False,
) -> None:
    """Write ledgers as data frames, one file each; `roundkit schema` says what the columns mean."""
    from roundkit.analysis import TABLES, load

    with shown_progress(stderr=True) as progress:
        ledgers = load(places, strict=not skip_broken, progress=progress)
        files = ledgers.export(out, form.value, table or list(TABLES))
    for file in files:
        typer.echo(str(file))
    for problem in ledgers.problems:
        typer.echo(f"left out: {problem}", err=True)


@app.command("import", rich_help_panel="Frames")
def import_(
    kind: Annotated[Foreign, typer.Argument(help="What wrote it.")],
    source: Annotated[Path, typer.Argument(help="The file; of openevolve, a folder checkpoint_N.")],
    out: Annotated[Path, typer.Option(help="The folder to make; `export` and the notebooks read it.")],
    campaign: Annotated[str | None, typer.Option(help="What to call the campaign.")] = None,
    name: Annotated[str | None, typer.Option("--round", help="What to call the round.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric that decides (results-tsv, openevolve).")
    ] = None,
    direction: Annotated[Better, typer.Option(help="Which way is better (results-tsv).")] = Better.LOWER,
    table: Annotated[str, typer.Option(help="The frame that the lines become (jsonl).")] = "tickets",
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=KEY", help="A column and its key in the lines (jsonl); repeatable."),
    ] = None,
) -> None:
    """Make frames of another tool's ledger; whatever it decided stays a claim and becomes no verdict."""
    from roundkit.analysis import write_frames

    frames = _read(kind, source, campaign, name, metric, direction, table, _columns(column or []))
    for file in write_frames(frames, out):
        typer.echo(str(file))


def _read(
    kind: Foreign,
    source: Path,
    campaign: str | None,
    name: str | None,
    metric: str | None,
    direction: Better,
    table: str,
    columns: dict[str, str],
) -> Frames:
    from roundkit.analysis import importers

    match kind:
        case Foreign.PYPERF:
            return {
                "trials": importers.as_trials(importers.read_pyperf(source), campaign=campaign, name=name)
            }
        case Foreign.HYPERFINE:
            return {
                "trials": importers.as_trials(importers.read_hyperfine(source), campaign=campaign, name=name)
            }
        case Foreign.RESULTS_TSV:
            return importers.read_results_tsv(
                source, metric=metric, direction=direction.value, campaign=campaign, name=name
            )
        case Foreign.OPENEVOLVE:
            chosen = {} if metric is None else {"metric": metric}
            return importers.read_openevolve(source, campaign=campaign, name=name, **chosen)
        case Foreign.JSONL:
            return {table: importers.read_jsonl(source, columns, table=table, campaign=campaign, name=name)}


def _columns(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if any(not (column and key) for column, _, key in pairs):
        raise typer.BadParameter("a column is given as COLUMN=KEY", param_hint="--column")
    return {column: key for column, _, key in pairs}
