"""Commands on data frames: what their columns mean, export, and import of other tools' ledgers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.progress import shown_progress
from roundkit.core.errors import refuse

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
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A frame, or a kind of file such as campaign.yaml; without it, all are listed.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Machine-readable; of a file its JSON Schema, for editors.")
    ] = False,
) -> None:
    """Show the columns of a frame with type, unit and meaning, or the fields of a file.

    Examples:
        roundkit schema
        roundkit schema tickets
        # For an editor that checks what you write
        roundkit schema campaign.yaml --json > campaign.schema.json
    """
    import difflib
    import json

    from roundkit.analysis.catalog import FRAME_ROWS, FRAMES
    from roundkit.cli.tables import plain_table
    from roundkit.models.schema_fields import all_rows
    from roundkit.models.schemas import DOCUMENTS, document_named, documents_of_file, json_schema

    document = None if name is None else document_named(name)
    if document is not None:
        fields = json_schema(document)
        if as_json:
            typer.echo(json.dumps(fields, indent=2, ensure_ascii=False))
            return
        rows = [
            {"field": row.name, "type": row.type, "default": row.default or "", "meaning": row.meaning}
            for row in all_rows(fields)
        ]
    elif name is None:
        rows = [
            *(
                {"name": table, "what": f"frame: {FRAME_ROWS[table]}, {len(columns)} columns"}
                for table, columns in FRAMES.items()
            ),
            *(
                {"name": each.name, "what": f"file: {each.file}, written by {each.writer}"}
                for each in DOCUMENTS
            ),
        ]
    elif name in FRAMES:
        rows = [
            {"column": each.name, "type": str(each.dtype), "unit": each.unit, "meaning": each.meaning}
            for each in FRAMES[name]
        ]
    else:
        if same := documents_of_file(name):
            kinds = ", ".join(f"{each.name} ({each.file})" for each in same)
            raise refuse(
                "unknown-table", f"several kinds of file are called {name!r}", remedy=f"name one: {kinds}"
            )
        near = difflib.get_close_matches(name, [*FRAMES, *(each.name for each in DOCUMENTS)])
        remedy = f"did you mean {', '.join(near)}?" if near else "`roundkit schema` lists them all"
        raise refuse("unknown-table", f"there is no frame and no file {name!r}", remedy=remedy)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        plain_table([*rows[0]], [[str(value) for value in row.values()] for row in rows])


@app.command(rich_help_panel="Frames")
def export(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="PLACE...",
            help="Round directories, evidence, exports, pilots, wave campaigns, folders of any, globs.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to make; it must not exist.")],
    form: Annotated[FrameForm, typer.Option("--format", help="What to write.")] = FrameForm.PARQUET,
    table: Annotated[list[str] | None, typer.Option(help="Only this frame; may be repeated.")] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out what cannot be read, and say so.")
    ] = False,
) -> None:
    """Write ledgers, pilots and campaigns as data frames, one file each; `schema` says what columns mean.

    Examples:
        roundkit export evidence/code-search --out frames
        # Everything below a folder, of which one frame
        roundkit export ../rounds --out csv --format csv --table tickets
    """
    from roundkit.analysis import export_places
    from roundkit.core.outputs import check_new_folder

    check_new_folder(out, "--out")
    with shown_progress(stderr=True) as progress:
        done = export_places(
            places, out, form.value, tables=table or (), strict=not skip_broken, progress=progress
        )
    for file in done.files:
        typer.echo(str(file))
    for problem in done.problems:
        typer.echo(f"left out: {problem}", err=True)


@app.command("import", rich_help_panel="Frames")
def import_(
    kind: Annotated[Foreign, typer.Argument(metavar="KIND", help=f"What wrote it: {', '.join(Foreign)}.")],
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="The file; of openevolve, a folder checkpoint_N.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to make; `export` and the notebooks read it.")],
    campaign: Annotated[str | None, typer.Option(help="What to call the campaign.")] = None,
    name: Annotated[str | None, typer.Option("--round", help="What to call the round.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric that decides.", rich_help_panel="results-tsv, openevolve")
    ] = None,
    direction: Annotated[
        Better, typer.Option(help="Which way is better.", rich_help_panel="results-tsv")
    ] = Better.LOWER,
    table: Annotated[
        str, typer.Option(help="The frame that the lines become.", rich_help_panel="jsonl")
    ] = "tickets",
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KEY",
            help="A column and its key in the lines; may be repeated.",
            rich_help_panel="jsonl",
        ),
    ] = None,
) -> None:
    """Make frames of another tool's ledger; whatever it decided stays a claim and becomes no verdict.

    Examples:
        roundkit import pyperf bench.json --out frames/pyperf
        roundkit import results-tsv results.tsv --metric val_bpb --out frames/search
        roundkit import jsonl runs.jsonl --column ticket=id --out frames/runs
    """
    from roundkit.analysis import write_frames
    from roundkit.core.outputs import check_new_folder

    check_new_folder(out, "--out")
    columns = _columns(column or [])
    with shown_progress(stderr=True) as progress, progress.task(f"import {source.name}", 2, "steps") as task:
        frames = _read(kind, source, campaign, name, metric, direction, table, columns)
        task.advance()
        files = write_frames(frames, out)
        task.advance()
    for file in files:
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
