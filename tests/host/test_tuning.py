"""M12: what is untuned about a machine, read from files as Linux lays them out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from roundkit.host.tuning import TuningFact, read_tuning

QUIET = {
    "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "2\n",
    "proc/loadavg": "0.00 0.10 0.20 1/300 4000\n",
    "proc/meminfo": "MemTotal:  100 kB\nSwapTotal:  50 kB\nSwapFree:  50 kB\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/sys/kernel/randomize_va_space": "0\n",
}
UNTUNED = {
    "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": ("CPU governor", "powersave"),
    "sys/devices/system/cpu/intel_pstate/no_turbo": ("turbo", "0"),
    "sys/devices/system/cpu/cpu2/topology/thread_siblings_list": (
        "SMT siblings of the chosen cores",
        "2,6-7",
    ),
    "proc/loadavg": ("load", f"{os.cpu_count()}.50 1.00 1.00 2/300 4000"),
    "proc/meminfo": ("swap in use", "SwapTotal: 50 kB\nSwapFree: 20 kB"),
    "sys/kernel/mm/transparent_hugepage/enabled": ("transparent huge pages", "[always] madvise never"),
    "proc/sys/kernel/randomize_va_space": ("ASLR", "2"),
}


def read(root: Path, files: dict[str, str]) -> dict[str, TuningFact]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return {fact.name: fact for fact in read_tuning([2], root=root)}


def test_m12_a_quiet_machine_is_tuned_throughout(tmp_path: Path) -> None:
    facts = read(tmp_path, QUIET)
    assert {name for name, fact in facts.items() if fact.tuned is not True} == set()
    assert not any(fact.advice for fact in facts.values())


@pytest.mark.parametrize("file", UNTUNED)
def test_m12_each_thing_that_is_untuned_is_named_with_advice(tmp_path: Path, file: str) -> None:
    name, text = UNTUNED[file]
    facts = read(tmp_path, {**QUIET, file: text})
    assert [fact.name for fact in facts.values() if fact.tuned is False] == [name]
    assert facts[name].advice


def test_m12_siblings_are_named_by_number(tmp_path: Path) -> None:
    facts = read(tmp_path, {**QUIET, "sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "2,6-7"})
    assert facts["SMT siblings of the chosen cores"].found == "cores 6, 7"


def test_m12_turbo_is_found_where_amd_keeps_it(tmp_path: Path) -> None:
    files = {name: text for name, text in QUIET.items() if "no_turbo" not in name}
    facts = read(tmp_path, {**files, "sys/devices/system/cpu/cpufreq/boost": "1\n"})
    assert (facts["turbo"].found, facts["turbo"].tuned) == ("on", False)


def test_m12_what_a_host_does_not_tell_is_unknown_and_not_tuned(tmp_path: Path) -> None:
    assert {(fact.found, fact.tuned) for fact in read(tmp_path, {}).values()} == {(None, None)}


def test_m12_this_machine_can_be_read() -> None:
    assert len(read_tuning(sorted(os.sched_getaffinity(0))[:1])) == 7
