"""Stage 4: show the matches as a page of text."""

from searchkit.rank import Hit
from searchkit.snippet import snippet

LINES_A_HIT = 2


def render(query: str, terms: list[str], hits: list[Hit]) -> str:
    """Return the page for one query: a headline, then each hit with the lines that match."""
    page = f"{len(hits)} matches for {query!r}\n"
    for place, hit in enumerate(hits, start=1):
        page += f"{place}. {hit.document.path} ({hit.score:.3f})\n"
        for number, line in snippet(hit.document.text, terms, LINES_A_HIT):
            page += f"   {number}: {line}\n"
    return page
