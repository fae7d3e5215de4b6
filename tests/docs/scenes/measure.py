"""Two checkouts of the reader's program, and a repository with a revision before."""

from __future__ import annotations

from docs.programs import FAST, SLOW, engine, own_program
from docs.reading import Block
from docs.stage import Stage, compare
from support.synthetic import write_files


def measure(stage: Stage) -> None:
    own_program(stage)
    files = {path: (stage.place / path).read_text() for path in ("bench.py", "mypackage/__init__.py")}
    for side, seconds in (("old", SLOW), ("new", FAST)):
        write_files(stage.place / side, {**files, "mypackage/engine.py": engine(seconds)})
    stage.on("cpu: with 20 pairs", check=_first_words)


def _first_words(block: Block, said: str) -> None:
    """What follows the figure depends on the machine's noise."""
    words = block.text.split(";")[0].removeprefix("cpu: ")
    compare(Block(block.page, block.line, block.kind, words), said)
