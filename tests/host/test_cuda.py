"""K07: what CUDA devices say, against answers of NVML that are on record."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pynvml
import pytest
from support.nvml import ANSWERS, RecordedNvml

from roundkit.core.errors import Refused
from roundkit.host.devices import DeviceLimits, cuda, lease_names, platform_named
from roundkit.host.devices.base import DeviceState

FIRST = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"
SECOND = "GPU-c3a1a6c0-8a6e-4f3c-9b1a-07d4e9a1f210"
PART = "MIG-9b4b8f52-5b0f-5a8e-8f3d-3b7b9f4c2a11"
PARTS = (PART, "MIG-1f2d3c4b-0a9b-5c8d-9e7f-6a5b4c3d2e1f")
CUDA = platform_named("cuda")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> RecordedNvml:
    return use(monkeypatch, "two-gpus")


def use(monkeypatch: pytest.MonkeyPatch, name: str) -> RecordedNvml:
    nvml = RecordedNvml(name)
    monkeypatch.setattr(cuda, "_library", lambda: nvml)
    return nvml


def test_k07_an_idle_device_qualifies_by_its_uuid(gpus: RecordedNvml) -> None:
    assert CUDA.list() == (FIRST, SECOND)
    state = CUDA.qualify(FIRST)
    assert state.problem is None
    assert state.identity == f"NVIDIA H100 80GB HBM3, {FIRST}"
    assert state.readings["temperature_c"] == 34.0
    assert state.readings["processes"] == 0.0
    assert state.readings["slowed_by"] == "nothing"
    assert gpus.open == 0
    assert lease_names("cuda", (FIRST,)) == (f"cuda:{FIRST}",)


@pytest.mark.parametrize(
    ("function", "answer", "problem"),
    [
        ("nvmlDeviceGetComputeRunningProcesses", [{"pid": 4711}], "somebody computes on .*process 4711"),
        ("nvmlDeviceGetMPSComputeRunningProcesses", [{"pid": 4712}], "somebody computes on .*process 4712"),
        ("nvmlDeviceGetComputeRunningProcesses", {"error": "NOT_SUPPORTED"}, "does not tell who computes"),
        ("nvmlDeviceGetCurrentClocksEventReasons", 0x21, "slowed by SwThermalSlowdown"),
        ("nvmlDeviceGetCurrentClocksEventReasons", 0x4 | 0x8, "slowed by SwPowerCap, HwSlowdown"),
        ("nvmlDeviceGetCurrentClocksEventReasons", 1 << 40, "slowed by reason 0x10000000000"),
        ("nvmlDeviceGetRemappedRows", [0, 1, 0, 1], "broken row"),
        ("nvmlDeviceGetTemperature", {"error": "GPU_IS_LOST"}, "cannot be read.*lost"),
        ("lost", True, "cannot be read.*lost"),
    ],
)
def test_k07_a_device_that_is_busy_slowed_broken_or_lost_does_not_qualify(
    gpus: RecordedNvml, function: str, answer: object, problem: str
) -> None:
    gpus.answer(FIRST, function, answer)
    assert_problem(CUDA.qualify(FIRST), problem)
    assert CUDA.qualify(SECOND).problem is None


def assert_problem(state: DeviceState, pattern: str) -> None:
    assert state.problem is not None
    assert re.search(pattern, state.problem, re.IGNORECASE), state.problem


def test_k07_idleness_and_the_owners_own_clocks_are_no_fault(gpus: RecordedNvml) -> None:
    gpus.answer(FIRST, "nvmlDeviceGetCurrentClocksEventReasons", 0x1 | 0x2)
    assert CUDA.qualify(FIRST).problem is None
    gpus.answer(FIRST, "nvmlDeviceGetCurrentClocksEventReasons", {"error": "NOT_SUPPORTED"})
    assert CUDA.qualify(FIRST).readings["slowed_by"] is None


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"max_temperature_c": 30}, "temperature_c of .* is 34, the plan's limit 30"),
        ({"min_clock_mhz": 2000}, "clock_mhz of .* is 1980, the plan's limit 2000"),
        ({"max_memory_used_mib": 100}, "memory_used_mib"),
        ({"max_ecc_uncorrected": 0}, None),
        ({"max_load_1min": 1}, "does not give its load_1min"),
        ({"max_temperature_c": 40, "min_clock_mhz": 1900}, None),
    ],
)
def test_k07_readings_beyond_the_plans_limits(
    gpus: RecordedNvml, limits: dict[str, float], problem: str | None
) -> None:
    state = CUDA.qualify(FIRST, None, DeviceLimits.model_validate(limits))
    if problem is None:
        assert state.problem is None
    else:
        assert_problem(state, problem)


@pytest.mark.parametrize(
    ("function", "answer", "problem"),
    [
        ("nvmlDeviceGetTotalEccErrors", 2, "had memory errors"),
        (
            "nvmlDeviceGetViolationStatus",
            {"referenceTime": 1, "violationTime": 5_000_000_000},
            "slowed by heat",
        ),
        ("nvmlDeviceGetName", "NVIDIA A100", "identity"),
    ],
)
def test_k07_what_happens_during_an_experiment_is_drift(
    gpus: RecordedNvml, function: str, answer: object, problem: str
) -> None:
    before = CUDA.qualify(FIRST)
    assert CUDA.qualify(FIRST, before).problem is None
    gpus.answer(FIRST, function, answer)
    assert_problem(CUDA.qualify(FIRST, before), problem)
    # On its own, what the device says now is no fault of the next experiment.
    assert CUDA.qualify(FIRST).problem is None


def test_k07_an_older_drivers_answers_count_under_its_own_names(gpus: RecordedNvml) -> None:
    gpus.answer(FIRST, "nvmlDeviceGetCurrentClocksEventReasons", {"error": "FUNCTION_NOT_FOUND"})
    gpus.answer(FIRST, "nvmlDeviceGetCurrentClocksThrottleReasons", 0x40)
    assert_problem(CUDA.qualify(FIRST), "slowed by HwThermalSlowdown")
    gpus.answer(FIRST, "nvmlDeviceGetComputeRunningProcesses", {"mismatch": True})
    assert_problem(CUDA.qualify(FIRST), "does not tell who computes")


@pytest.mark.parametrize("name", ["two-gpus", "mig"])
def test_k07_recorded_answers_have_the_shape_that_the_binding_gives(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # The binding itself, over a driver that says yes to everything and fills in nothing.
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", lambda _: lambda *_: pynvml.NVML_SUCCESS)
    arguments = {
        "nvmlDeviceGetTemperature": (pynvml.NVML_TEMPERATURE_GPU,),
        "nvmlDeviceGetClockInfo": (pynvml.NVML_CLOCK_SM,),
        "nvmlDeviceGetTotalEccErrors": (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
        "nvmlDeviceGetViolationStatus": (pynvml.NVML_PERF_POLICY_THERMAL,),
    }
    handles = json.loads((ANSWERS / f"{name}.json").read_text())["handles"]
    checked = set()
    for answers in handles.values():
        for function, recorded in answers.items():
            if function == "instances" or (isinstance(recorded, dict) and "error" in recorded):
                continue
            given = getattr(pynvml, function)(pynvml.c_nvmlDevice_t(), *arguments.get(function, ()))
            checked.add(function)
            if isinstance(recorded, dict):
                assert set(recorded) == {field for field, _ in given._fields_}, function
            elif isinstance(recorded, list):
                assert len(given) == len(recorded), function
            elif function != "nvmlDeviceGetDeviceHandleFromMigDeviceHandle":  # a handle, here by its name
                assert type(given) is type(recorded), function
    assert len(checked) >= 12
    assert {field for field, _ in pynvml.c_nvmlProcessInfo_v3_t._fields_} >= {"pid"}
    for reason in (*cuda._NO_FAULT, *cuda._REASONS):
        assert getattr(pynvml, f"nvmlClocksEventReason{reason}") == getattr(
            pynvml, f"nvmlClocksThrottleReason{reason}"
        )


def test_k07_mig_instances_are_devices_and_their_gpu_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = use(monkeypatch, "mig")
    assert CUDA.list() == PARTS
    state = CUDA.qualify(PART)
    assert state.problem is None
    assert state.identity == f"NVIDIA H100 80GB HBM3 MIG 3g.40gb, {PART}"
    assert state.readings["memory_used_mib"] == 38.0
    assert state.readings["temperature_c"] == 34.0
    assert_problem(CUDA.qualify(FIRST), "is split into MIG instances")
    nvml.answer(PARTS[1], "nvmlDeviceGetComputeRunningProcesses", [{"pid": 9}])
    assert CUDA.qualify(PART).problem is None
    assert_problem(CUDA.qualify(PARTS[1]), "process 9")


def test_k07_only_the_leased_devices_files_are_bound(
    gpus: RecordedNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}
    monkeypatch.setattr(Path, "is_char_device", lambda path: str(path) in present)
    bound = CUDA.bind([SECOND])
    assert {str(node) for node in bound.nodes} == {"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}
    assert bound.env["CUDA_VISIBLE_DEVICES"] == SECOND
    gpus.answer(SECOND, "lost", True)
    with pytest.raises(OSError, match="cannot be given to a trial"):
        CUDA.bind([SECOND])


def test_k07_a_mig_instance_is_bound_with_its_own_capability(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, "mig")
    monkeypatch.setattr(cuda, "_CAPABILITIES", tmp_path)
    monkeypatch.setattr(Path, "is_char_device", lambda _: True)
    for folder, minor in (("gi1", 21), ("gi1/ci0", 22), ("gi2", 30)):
        (tmp_path / "gpu0/mig" / folder).mkdir(parents=True)
        (tmp_path / "gpu0/mig" / folder / "access").write_text(
            f"DeviceFileMinor: {minor}\nDeviceFileMode: 438\n"
        )
    bound = {str(node) for node in CUDA.bind([PART]).nodes}
    assert {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"} <= bound
    assert "/dev/nvidia-caps/nvidia-cap30" not in bound


def test_k07_without_the_binding_or_a_driver_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_library", lambda: "NVML cannot be asked: there is no driver")
    assert CUDA.list() == ()
    assert CUDA.qualify(FIRST).problem == "NVML cannot be asked: there is no driver"


def test_a_device_that_is_no_uuid_does_not_qualify(gpus: RecordedNvml) -> None:
    assert_problem(CUDA.qualify("0"), "is no UUID")
    assert_problem(CUDA.qualify("GPU-0"), "cannot be read.*not found")


def test_unknown_platform_names_cuda_too() -> None:
    with pytest.raises(Refused, match="cpu, cuda, fixture"):
        platform_named("abacus")
