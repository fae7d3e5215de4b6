"""``roundkit explain``: what a code means that was printed or recorded."""

from __future__ import annotations

from typing import Annotated

import typer

from roundkit.cli.app import app
from roundkit.core.errors import refuse


@app.command(rich_help_panel="Host")
def explain(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="A code as it was printed, e.g. scope-overlap.")
    ],
) -> None:
    """Say what a code of a refusal, verdict, record or audit means, and what to do; verdicts and states too.

    Examples:
        roundkit explain scope-overlap
    """
    import difflib

    from roundkit.core.codes import FAMILIES, all_codes, codes_named

    wanted = code.strip("[]")
    found = codes_named(wanted)
    if not found:
        by_letters = {_letters(each.code): each.code for each in all_codes()}
        near = [by_letters[found] for found in difflib.get_close_matches(_letters(wanted), by_letters)]
        raise refuse(
            "unknown-code",
            f"there is no code {wanted!r}",
            remedy=f"did you mean {', '.join(near)}?" if near else "give it as it was printed",
        )
    for each in found:
        typer.echo(f"{each.code}: {each.meaning}")
        if each.remedy:
            typer.echo(f"    → {each.remedy}")
        typer.echo(f"    ({FAMILIES[each.family]})")


def _letters(code: str) -> str:
    """Return what of a code is heard: hyphens, spaces and capitals are easily mistaken."""
    return "".join(letter for letter in code.casefold() if letter.isalnum())
