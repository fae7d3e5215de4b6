"""Stage 2: keep each document with its terms."""

from dataclasses import dataclass

from searchkit.tokenize import tokenize


@dataclass(frozen=True)
class Document:
    """A source file and the terms in it, in order, as often as they occur."""

    path: str
    text: str
    terms: list[str]


def build_index(sources: dict[str, str]) -> list[Document]:
    """Tokenize every source (path to text) and return the documents, in the order of their paths."""
    return [Document(path, sources[path], tokenize(sources[path])) for path in sorted(sources)]
