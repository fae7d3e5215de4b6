"""What a person says on the command line, where it becomes a part of a record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from roundkit.core.errors import Refusal, Refused


@contextmanager
def stated() -> Iterator[None]:
    """Refuse words that fit no record.

    Raises:
        Refused: ``bad-words``, with each option and what is wrong with it.
    """
    try:
        yield
    except ValidationError as error:
        raise Refused(
            [
                Refusal(
                    "bad-words", found["msg"], f"--{found['loc'][0]}", "say it in other words, as UTF-8 text"
                )
                for found in error.errors(include_url=False, include_input=False)
            ]
        ) from None
