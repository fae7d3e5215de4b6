"""The side of the benchmark that holds inputs, clock and result. Runs no line of searchkit.

The inputs are parts of the sources of Python's own standard library, as many characters for every
seed; which parts, and which queries, the seed decides.
"""

import random
import sysconfig
from pathlib import Path
from typing import Any

from roundkit.harness import Session, driver

SOURCES = 22
CHARACTERS_A_SOURCE = 5400
QUERIES = 3
HITS_A_QUERY = 5

TOPICS = [
    "open file path", "read line buffer", "parse argument option", "thread lock wait",
    "socket address connect", "encode string bytes", "signal handler install", "module import loader",
    "compare sequence match", "date time zone", "error message format", "write header field",
    "process exit status", "iterate key value", "cache size limit", "search pattern group",
]  # fmt: skip


def run(session: Session) -> None:
    """Time one batch of searches a repetition, on inputs of its own; then look once more, untimed."""
    modules = library_modules()
    for repetition in range(session.repetitions):
        request = search_request(modules, session.random(repetition), SOURCES)
        with session.timed():
            answer = session.call("search", request)
        session.save(f"repetition-{repetition}", {"request": request, "answer": answer})
    request = search_request(modules, session.random(session.repetitions), SOURCES // 8)
    session.save("afterwards", {"request": request, "answer": session.call("search", request)})


def library_modules() -> list[Path]:
    """Return the modules at the top of the standard library that are long enough to take a part of."""
    library = Path(sysconfig.get_path("stdlib"))
    # Some systems ship links in there that lead out of what a benchmark can see.
    modules = (path for path in library.glob("*.py") if path.is_file())
    return sorted(path for path in modules if path.stat().st_size > 2 * CHARACTERS_A_SOURCE)


def search_request(modules: list[Path], chance: random.Random, sources: int) -> dict[str, Any]:
    """Choose sources and queries; see ``searchkit.engine.search_all`` for the shape."""
    return {
        "sources": {path.name: part_of(path, chance) for path in chance.sample(modules, sources)},
        "queries": chance.sample(TOPICS, QUERIES),
        "limit": HITS_A_QUERY,
    }


def part_of(path: Path, chance: random.Random) -> str:
    """Return a stretch of a module's text, always of the same length."""
    text = path.read_text(encoding="utf-8", errors="replace")
    start = chance.randrange(len(text) - CHARACTERS_A_SOURCE)
    return text[start : start + CHARACTERS_A_SOURCE]


driver(run)
