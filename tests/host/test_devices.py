"""Devices say what they are and why they do not qualify."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from roundkit.core.errors import Refused
from roundkit.host.devices import DeviceState, lease_names, machine_identity, platform_named


def test_fault_27_a_core_that_does_not_exist_does_not_qualify() -> None:
    for device in ("100000", "-1", "x", "", "²"):
        state = platform_named("cpu").qualify(device)
        assert state.problem is not None
        assert "is not among the cores" in state.problem


def test_core_is_read_with_nulls_where_the_host_does_not_tell() -> None:
    core = str(min(os.sched_getaffinity(0)))
    state = platform_named("cpu").qualify(core)
    assert state.problem is None
    assert set(state.readings) == {"governor", "frequency_mhz", "temperature_c", "load_1min"}
    assert all(reading is None or isinstance(reading, float | str) for reading in state.readings.values())
    assert platform_named("cpu").bind([core]).cpus == {int(core)}


def test_core_whose_governor_moved_since_before_has_drifted() -> None:
    core = str(min(os.sched_getaffinity(0)))
    before = platform_named("cpu").qualify(core)
    moved = DeviceState(core, before.identity, {**before.readings, "governor": "a governor of before"})
    assert platform_named("cpu").qualify(core, before).problem is None
    assert "governor" in (platform_named("cpu").qualify(core, moved).problem or "")


def test_fault_36_identity_is_the_hardware_and_not_the_host_name() -> None:
    assert "cores" in machine_identity()
    assert socket.gethostname() not in machine_identity()


def test_fixture_device_is_what_its_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = platform_named("fixture")
    monkeypatch.delenv("ROUNDKIT_FIXTURE_DEVICES", raising=False)
    assert "names no folder" in (platform.qualify("a").problem or "")
    monkeypatch.setenv("ROUNDKIT_FIXTURE_DEVICES", str(tmp_path))
    assert "no fixture device" in (platform.qualify("a").problem or "")
    assert "no plain name" in (platform.qualify("../a").problem or "")
    (tmp_path / "a.json").write_text('{"identity": "A", "problem_after": "hot", "cpus": [0]}')
    before = platform.qualify("a")
    assert (before.identity, before.problem) == ("A", None)
    assert platform.qualify("a", before).problem == "hot"
    assert platform.bind(["a"]).cpus == {0}


def test_one_core_has_one_lease_name_however_it_is_spelt() -> None:
    assert lease_names("cpu", ("3", "03")) == ("cpu:3", "cpu:3")
    assert lease_names("fixture", ("03",)) == ("fixture:03",)


def test_unknown_platform_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(Refused, match="cpu, cuda, fixture"):
        platform_named("abacus")
