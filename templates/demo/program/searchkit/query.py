"""What a searcher asks for."""

from searchkit.tokenize import tokenize


def query_terms(query: str) -> list[str]:
    """Return the terms of a query, each once, in the order of their first appearance."""
    terms: list[str] = []
    for term in tokenize(query):
        if term not in terms:
            terms.append(term)
    return terms
