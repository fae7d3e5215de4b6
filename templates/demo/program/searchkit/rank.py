"""Stage 3: order the documents by how well they match."""

from dataclasses import dataclass

from searchkit.index import Document
from searchkit.stats import Statistics


@dataclass(frozen=True)
class Hit:
    """A document that matches, and how well: the higher the score, the better."""

    document: Document
    score: float


def rank(documents: list[Document], statistics: Statistics, terms: list[str], limit: int) -> list[Hit]:
    """Return the best matches, best first; equal scores in the order of their paths.

    A document's score is the sum over the terms of how often it has the term, times how rare the term
    is, for a document of a thousand terms.
    """
    hits: list[Hit] = []
    for document in documents:
        score = 0.0
        for term in terms:
            score += document.terms.count(term) * statistics.rarity(term)
        hits.append(Hit(document, round(1000 * score / max(1, len(document.terms)), 6)))
    hits.sort(key=lambda hit: (-hit.score, hit.document.path))
    return [hit for hit in hits if hit.score > 0][:limit]
