"""The lines of a document that show why it matched."""


def snippet(text: str, terms: list[str], limit: int) -> list[tuple[int, str]]:
    """Return the first lines (number from 1, text) that contain one of the terms, whatever the case."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        for term in terms:
            if term in line.lower():
                found.append((number, line.strip()))
                break
    return found[:limit]
