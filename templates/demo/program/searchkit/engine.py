"""The engine: the four stages in a row."""

from typing import Any

from searchkit.index import build_index
from searchkit.query import query_terms
from searchkit.rank import rank
from searchkit.render import render
from searchkit.stats import Statistics


def search_all(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Index some sources and answer queries about them.

    Args:
        request: ``sources`` (path to text), ``queries`` (a list of strings) and ``limit`` (the most
            hits a query).

    Returns:
        For each query, in order: ``query``, ``hits`` (each with ``path`` and ``score``) and ``page``.
    """
    documents = build_index(request["sources"])
    statistics = Statistics(documents)
    answers = []
    for query in request["queries"]:
        terms = query_terms(query)
        hits = rank(documents, statistics, terms, request["limit"])
        answers.append(
            {
                "query": query,
                "hits": [{"path": hit.document.path, "score": hit.score} for hit in hits],
                "page": render(query, terms, hits),
            }
        )
    return answers
