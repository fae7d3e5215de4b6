"""Keys are taken out of whatever an agent prints before anything reads or keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_TOKEN_LENGTH = 20
_TOKEN = re.compile(rb"[^\s\"',;:=<>(){}\[\]]{%d,}" % _TOKEN_LENGTH)
_LEFT_OUT = re.compile(r"(\n\[… \d+ bytes left out …\]\n)")


class Redaction:
    """Replaces keys by their names.

    Args:
        keys: Value of each key variable, by the variable's name.
        credentials: Contents of credential files; every word of them that is long enough to be a key is one.
    """

    def __init__(self, keys: Mapping[str, str], credentials: Iterable[bytes] = ()) -> None:
        named = {form: name for name, value in keys.items() for form in _forms(value)}
        for content in credentials:
            named.update(dict.fromkeys(_TOKEN.findall(content), "a credential"))
        # The longest first: one key may begin with another.
        self._named = dict(sorted(named.items(), key=lambda item: -len(item[0])))
        words = b"|".join(map(re.escape, self._named))
        self._pattern = re.compile(words) if words else None
        self._any_case = re.compile(words, re.IGNORECASE) if words else None
        self._by_small = {form.lower(): name for form, name in self._named.items()}
        self.longest = max(map(len, self._named), default=0)

    def bytes(self, content: bytes) -> bytes:
        """Return a content without keys."""
        if self._pattern is None:
            return content
        return self._pattern.sub(lambda found: f"[{self._named[found[0]]}]".encode(), content)

    def text(self, text: str) -> str:
        """Return a text without keys."""
        return self.bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")

    def any_case(self, text: str) -> str:
        """Return a text without keys in whatever case: names of hosts are compared in small letters."""
        if self._any_case is None:
            return text
        content = text.encode("utf-8", "surrogateescape")
        clean = self._any_case.sub(lambda found: f"[{self._by_small[found[0].lower()]}]".encode(), content)
        return clean.decode("utf-8", "replace")

    def cut_text(self, text: str) -> str:
        """Return a text without keys whose middle was left out, where a key may have been cut in two."""
        parts = _LEFT_OUT.split(text)
        if len(parts) != len(("before", "mark", "after")):
            return self.text(text)
        before, mark, after = parts
        return self.text(before[: len(before) - self.longest] + mark + after[self.longest :])


def _forms(value: str) -> set[bytes]:
    """Return how a key may be written: as it is, and within a JSON text."""
    plain = value.strip()
    # A key of several lines is printed line by line.
    parts = {plain, *(line for line in plain.splitlines() if len(line) >= _TOKEN_LENGTH)} - {""}
    written = {json.dumps(part, ensure_ascii=escaped)[1:-1] for part in parts for escaped in (False, True)}
    return {form.encode("utf-8", "surrogateescape") for form in parts | written}
