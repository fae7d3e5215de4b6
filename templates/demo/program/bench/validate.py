"""Check the saved answers against a second, independent implementation. Exits 0 when all are right.

Reads every file that the driver saved in the folder ROUNDKIT_OUTPUT_DIR. Shares no code with
searchkit: regular expressions and counters instead of its loops.
"""

import json
import math
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

TERM = re.compile(r"[A-Z]+[a-z]*|[a-z]+|[0-9]+")
TOO_COMMON = frozenset(
    "and as class def elif else except false for from if import in is none not or pass raise return self"
    " the to true try with".split()
)
LINES_A_HIT = 2


def terms_of(text: str) -> list[str]:
    """Return the terms of a text: runs of letters or digits, split at capitals, lower-cased."""
    return [term for term in map(str.lower, TERM.findall(text)) if len(term) > 1 and term not in TOO_COMMON]


def expected_answers(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer a request the simple way."""
    sources: dict[str, str] = request["sources"]
    counts = {path: Counter(terms_of(text)) for path, text in sources.items()}
    having = Counter(term for counter in counts.values() for term in counter)
    answers = []
    for query in request["queries"]:
        terms = list(dict.fromkeys(terms_of(query)))
        weights = {term: math.log(len(sources) / having[term]) if having[term] else 0.0 for term in terms}
        scores = {path: score(counter, weights) for path, counter in counts.items()}
        best = sorted((path for path in scores if scores[path] > 0), key=lambda path: (-scores[path], path))
        hits = [{"path": path, "score": scores[path]} for path in best[: request["limit"]]]
        answers.append({"query": query, "hits": hits, "page": page(query, terms, hits, sources)})
    return answers


def score(counter: Counter[str], weights: dict[str, float]) -> float:
    """Weigh a document's terms, for a document of a thousand terms."""
    total = 0.0
    for term, weight in weights.items():
        total += counter[term] * weight
    return round(1000 * total / max(1, counter.total()), 6)


def page(query: str, terms: list[str], hits: list[dict[str, Any]], sources: dict[str, str]) -> str:
    """Render the page of one query."""
    lines = [f"{len(hits)} matches for {query!r}"]
    for place, hit in enumerate(hits, start=1):
        lines.append(f"{place}. {hit['path']} ({hit['score']:.3f})")
        numbered = enumerate(sources[hit["path"]].splitlines(), start=1)
        matching = [f"   {number}: {line.strip()}" for number, line in numbered if has_any(line, terms)]
        lines += matching[:LINES_A_HIT]
    return "\n".join(lines) + "\n"


def has_any(line: str, terms: list[str]) -> bool:
    """Say whether a line contains one of the terms."""
    return any(term in line.lower() for term in terms)


def first_difference(saved: dict[str, Any]) -> str | None:
    """Say where a saved answer is wrong; None where it is right."""
    answers, expected = saved["answer"], expected_answers(saved["request"])
    if not isinstance(answers, list) or len(answers) != len(expected):
        return f"{len(expected)} answers expected"
    for answer, right in zip(answers, expected, strict=True):
        if answer != right:
            return f"wrong answer to {right['query']!r}"
    return None


def main() -> int:
    """Check every saved answer; print the first difference."""
    files = sorted(Path(os.environ["ROUNDKIT_OUTPUT_DIR"]).glob("*.json"))
    if not files:
        print("no saved answers", file=sys.stderr)
        return 1
    for file in files:
        difference = first_difference(json.loads(file.read_text(encoding="utf-8")))
        if difference:
            print(f"{file.name}: {difference}", file=sys.stderr)
            return 1
    return 0


sys.exit(main())
