"""``python -m worked_example``: do what docs/example.md shows, and write its figures anew."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.result import machine_since
from bench.table import put_between
from docs.reading import ROOT, commands, parse
from docs.shell import Ran, run_in_shell, tools
from worked_example.figures import BEGIN, END, MEASURE, Replayed, figures

OUTPUTS = Path("build/example")


def main(words: Sequence[str]) -> int:
    """Run every command of the page; exit 1 at the first that fails."""
    parser = argparse.ArgumentParser(
        prog="worked_example", description="Do the example, and write its page anew."
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "example.md")
    parser.add_argument("--place", type=Path, default=ROOT, help="folder to work in; has templates/")
    parser.add_argument("--pairs", type=int, help="other than the page's, for a try")
    options = parser.parse_args(words)
    shutil.rmtree(options.place / OUTPUTS, ignore_errors=True)
    before = os.getloadavg()
    place, variables = options.place, {**os.environ, **tools()}
    ran: list[Ran] = []
    for command in page_commands(options.page, options.pairs):
        print(f"$ {command}", flush=True)
        ran.append(run_in_shell(command, place, variables, echo=True))
        place, variables = ran[-1].place, ran[-1].variables
        # `measure` says with 1 that the release is no faster, which is a figure too.
        if ran[-1].exit_code > int(command.startswith(MEASURE)):
            print(f"it ended with {ran[-1].exit_code}; the page stays as it is", file=sys.stderr)
            return 1
    replayed = [Replayed.read(options.place / OUTPUTS / name) for name in ("round-all", "round-agreed")]
    put_between(options.page, BEGIN, END, figures(replayed, ran, machine_since(before)))
    return 0


def page_commands(page: Path, pairs: int | None) -> list[str]:
    """Return the commands that a page shows, with another number of pairs if one is asked for."""
    blocks = [block for block in parse(page.name, page.read_text()) if block.kind == "commands"]
    shown = [command.text for block in blocks for command in commands(block)]
    if pairs is not None:
        shown = [re.sub(r"--pairs \d+", f"--pairs {pairs}", command) for command in shown]
    return [command for command in shown if not command.startswith("make ")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
