"""Stage 1: split source text into search terms."""

import string

TOO_COMMON = [
    "and", "as", "class", "def", "elif", "else", "except", "false", "for", "from", "if", "import", "in",
    "is", "none", "not", "or", "pass", "raise", "return", "self", "the", "to", "true", "try", "with",
]  # fmt: skip


def tokenize(text: str) -> list[str]:
    """Return the terms of a text, lower-cased, in order.

    A term is a run of ASCII letters or a run of digits. A capital after a small letter starts a new
    one, so that ``readLine`` and ``read_line`` give the same two terms. Terms of one character and
    those that every file is full of are left out.
    """
    terms: list[str] = []
    word = ""
    previous = "other"
    for character in text:
        current = kind(character)
        if not continues(previous, current):
            add_term(terms, word)
            word = ""
        if current != "other":
            word += character.lower()
        previous = current
    add_term(terms, word)
    return terms


def kind(character: str) -> str:
    """Say what a character is: ``capital``, ``small``, ``digit`` or ``other``."""
    if character in string.ascii_lowercase:
        return "small"
    if character in string.ascii_uppercase:
        return "capital"
    if character in string.digits:
        return "digit"
    return "other"


def continues(previous: str, current: str) -> bool:
    """Say whether a character of one kind continues the term that one of another kind belongs to."""
    return previous == current or (previous, current) == ("capital", "small")


def add_term(terms: list[str], word: str) -> None:
    """Append a word to the terms, unless it is too short or too common to search for."""
    if len(word) > 1 and word not in TOO_COMMON:
        terms.append(word)
