"""``python -m bench``: measure, write JSON, and write the table in the docs anew."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench import (
    aa,
    confinement,
    coordinator,
    errors,
    fleet,
    frames,
    instruments,
    materialize,
    scope,
    startup,
    submit,
    utilization,
)
from bench.result import Figure, Result, measured
from bench.table import put_between, render, rewrite

REPOSITORY = Path(__file__).resolve().parents[2]
ERRORS_BEGIN, ERRORS_END = "<!-- errors:begin -->", "<!-- errors:end -->"
BENCHMARKS: dict[str, Callable[[bool], Iterable[Figure]]] = {
    "aa": aa.measure,
    "confinement": confinement.measure,
    "coordinator": coordinator.measure,
    "errors": errors.measure,
    "fleet": fleet.measure,
    "frames": frames.measure,
    "instruments": instruments.measure,
    "materialize": materialize.measure,
    "scope": scope.measure,
    "startup": startup.measure,
    "submit": submit.measure,
    "utilization": utilization.measure,
}


def main(words: Sequence[str]) -> int:
    """Run benchmarks; exit code 0 whatever they show, since figures depend on who else is on the machine."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure roundkit's own speed.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--tiny", action="store_true", help="try the runner on sizes that show nothing")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "bench")
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs" / "performance.md")
    parser.add_argument("--measurement", type=Path, help="document for the table of error rates")
    options = parser.parse_args(words)
    unknown = set(options.rows) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    for name in options.rows or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        result = run(name, tiny=options.tiny)
        result.write(options.out)
        print(render([result]), flush=True)
        if name == "errors" and options.measurement is not None:
            put_between(options.measurement, ERRORS_BEGIN, ERRORS_END, errors.table(result))
    rewrite(options.docs, options.out)
    return 0


def run(name: str, *, tiny: bool) -> Result:
    """Run one benchmark."""
    return measured(name, "tiny" if tiny else "full", lambda: BENCHMARKS[name](tiny))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
