"""From result files to the table in ``docs/performance.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.result import Figure, Result, read_result

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"


def render(results: Sequence[Result]) -> str:
    """Return the table, and one line a benchmark about the machine."""
    return _laid_out({result.benchmark: _lines(result) for result in results})


def rewrite(document: Path, results_folder: Path) -> None:
    """Put the table of all results in a folder between the markers of a document.

    What the document says of other benchmarks stays: each line tells when and where it was measured.

    Raises:
        ValueError: the markers are missing.
    """
    results = [read_result(path) for path in results_folder.glob("*.json")]
    lines = _said(document.read_text()) | {result.benchmark: _lines(result) for result in results}
    put_between(document, BEGIN, END, _laid_out(lines))


def put_between(document: Path, begin: str, end: str, content: str) -> None:
    """Replace what stands between two markers of a document.

    Raises:
        ValueError: the markers are missing.
    """
    before, found, rest = document.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{document} has no markers {begin} and {end}")
    document.write_text(f"{before}{begin}\n{content}\n{end}{after}")


def _lines(result: Result) -> list[str]:
    """Return a benchmark's rows of the table, and last its line about the machine."""
    return [*(_row(figure, result.command) for figure in result.figures), _note(result)]


def _laid_out(lines: Mapping[str, list[str]]) -> str:
    head = ["| what | figure | target | met | command |", "| --- | --- | --- | --- | --- |"]
    rows = [row for name in sorted(lines) for row in lines[name][:-1]]
    return "\n".join([*head, *rows, "", "Measured on:", "", *(lines[name][-1] for name in sorted(lines))])


def _said(text: str) -> dict[str, list[str]]:
    """Return the lines that a document has on each benchmark; those without a machine's line are dropped."""
    table = text.partition(BEGIN)[2].partition(END)[0]
    found = {name: [line] for name, line in re.findall(r"^(?=- (\w+): )(.*)$", table, re.MULTILINE)}
    for row, name in reversed(re.findall(r"^(\| .* `make bench ROWS=(\w+)` \|)$", table, re.MULTILINE)):
        if name in found:
            found[name].insert(0, row)
    return found


def _row(figure: Figure, command: str) -> str:
    target = "—" if figure.target is None else _target(figure, figure.target)
    met = {True: "yes", False: "**no**", None: "—"}[figure.met]
    shown = f"{_number(figure.value)} {_unit(figure.unit)}"
    if "interval" in figure.detail:
        low, high = figure.detail["interval"]
        shown += f" ({_number(low)}–{_number(high)})"
    return f"| {figure.what} | {shown} | {target} | {met} | `{command}` |"


def _target(figure: Figure, target: float) -> str:
    if figure.better == "near":
        return f"{_number(1 / target)}–{_number(target)} {_unit(figure.unit)}"
    return f"{'≤' if figure.better == 'lower' else '≥'} {_number(target)} {_unit(figure.unit)}"


def _note(result: Result) -> str:
    machine = result.machine
    before, after = machine.load_before[0], machine.load_after[0]
    tiny = "" if result.size == "full" else f", **size {result.size}: says nothing about speed**"
    return (
        f"- {result.benchmark}: {machine.cpu_model}, {machine.cores} cores, Linux {machine.kernel}, Python "
        f"{machine.python}, {machine.date_utc}, load average {before:.1f} before and {after:.1f} after{tiny}"
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _unit(unit: str) -> str:
    return "×" if unit == "x" else unit
