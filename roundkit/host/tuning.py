"""What is untuned about the machine for timing: read, never changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_CPU = Path("sys/devices/system/cpu")


class TuningFact(BaseModel):
    """One thing about the machine that times depend on.

    Attributes:
        name: What it is.
        found: What was read; null where this host does not tell.
        tuned: Whether it is as a quiet measurement wants it; null where that is not known.
        advice: What would make it so, for the machine's owner to decide.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    found: str | None
    tuned: bool | None
    advice: str = ""


def read_tuning(cores: Sequence[int], *, root: Path = Path("/")) -> tuple[TuningFact, ...]:
    """Look at what makes times on some cores vary, and change nothing.

    Args:
        cores: The cores that are measured on.
        root: Where ``/sys`` and ``/proc`` are.
    """
    return (
        _governor(root, cores),
        _turbo(root),
        _siblings(root, cores),
        _load(root, cores),
        _swap(root),
        _huge_pages(root),
        _layout(root),
    )


def _governor(root: Path, cores: Sequence[int]) -> TuningFact:
    read = [_text(root / _CPU / f"cpu{core}" / "cpufreq" / "scaling_governor") for core in cores]
    known = sorted({governor for governor in read if governor is not None})
    return _fact(
        "CPU governor",
        ", ".join(known) or None,
        lambda _: known == ["performance"],
        "`cpupower frequency-set -g performance` keeps the clock up between trials",
    )


def _turbo(root: Path) -> TuningFact:
    off, boost = _text(root / _CPU / "intel_pstate" / "no_turbo"), _text(root / _CPU / "cpufreq" / "boost")
    found = {"0": "on", "1": "off"}.get(off or "") or {"1": "on", "0": "off"}.get(boost or "")
    return _fact(
        "turbo",
        found,
        lambda state: state == "off",
        "with turbo the clock depends on temperature and on what the other cores do; switch it off in"
        " /sys/devices/system/cpu/intel_pstate/no_turbo or cpufreq/boost",
    )


def thread_siblings(cores: Collection[int], *, root: Path = Path("/")) -> frozenset[int]:
    """Return the other cores that share a processor core with some; none where the host does not tell."""
    known = filter(None, _sibling_lists(root, cores))
    return frozenset(core for text in known for core in _numbers(text)) - set(cores)


def _sibling_lists(root: Path, cores: Iterable[int]) -> list[str | None]:
    return [_text(root / _CPU / f"cpu{core}" / "topology" / "thread_siblings_list") for core in cores]


def _siblings(root: Path, cores: Sequence[int]) -> TuningFact:
    if None in _sibling_lists(root, cores):
        return TuningFact(name="SMT siblings of the chosen cores", found=None, tuned=None)
    others = sorted(thread_siblings(cores, root=root))
    return TuningFact(
        name="SMT siblings of the chosen cores",
        found=f"cores {', '.join(map(str, others))}" if others else "none",
        tuned=not others,
        advice=""
        if not others
        else "what runs on a sibling slows the core: keep it idle, or take it offline",
    )


def _load(root: Path, cores: Sequence[int]) -> TuningFact:
    text, count = _text(root / "proc/loadavg"), os.cpu_count() or 1
    return _fact(
        "load",
        None if text is None else f"{float(text.split()[0]):.2f} on {count} cores",
        # What already runs leaves the chosen cores to the trials.
        lambda found: float(found.split()[0]) <= count - len(cores),
        "other work shares the cores that are measured on; stop it, or measure on more pairs",
    )


def _swap(root: Path) -> TuningFact:
    rows = dict(
        line.split(":", 1) for line in (_text(root / "proc/meminfo") or "").splitlines() if ":" in line
    )
    sizes = [rows.get(name, "").split() for name in ("SwapTotal", "SwapFree")]
    used = None if not all(sizes) else int(sizes[0][0]) - int(sizes[1][0])
    return _fact(
        "swap in use",
        None if used is None else f"{used} KiB",
        lambda _: used == 0,
        "pages that come back from swap during a trial take milliseconds; free some memory",
    )


def _huge_pages(root: Path) -> TuningFact:
    text = _text(root / "sys/kernel/mm/transparent_hugepage/enabled")
    chosen = None if text is None else text.partition("[")[2].partition("]")[0] or text
    return _fact(
        "transparent huge pages",
        chosen,
        lambda found: found != "always",
        "with `always` a run gets huge pages or not, as memory happens to be split; `madvise` leaves it to"
        " the program",
    )


def _layout(root: Path) -> TuningFact:
    value = _text(root / "proc/sys/kernel/randomize_va_space")
    return _fact(
        "ASLR",
        {"0": "off", "1": "on, without the heap", "2": "on"}.get(value or "", value),
        lambda found: found == "off",
        "each run has another memory layout; fresh copies in randomised pairs average that out, so it may"
        " stay",
    )


def _fact(name: str, found: str | None, tuned: Callable[[str], bool], advice: str) -> TuningFact:
    good = None if found is None else tuned(found)
    return TuningFact(name=name, found=found, tuned=good, advice=advice if good is False else "")


def _numbers(text: str) -> list[int]:
    """Return the cores of a kernel list such as ``0-1,4``."""
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores.extend(range(int(first), int(last or first) + 1))
    return cores


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
