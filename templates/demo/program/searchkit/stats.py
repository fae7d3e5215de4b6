"""What is known about the collection as a whole: how rare each term is."""

import math

from searchkit.index import Document


class Statistics:
    """Statistics of a fixed collection of documents."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    def rarity(self, term: str) -> float:
        """Return the inverse document frequency of a term: 0 where every document has it, or none."""
        having = 0
        for document in self.documents:
            if document.terms.count(term) > 0:
                having += 1
        if having == 0:
            return 0.0
        return math.log(len(self.documents) / having)
