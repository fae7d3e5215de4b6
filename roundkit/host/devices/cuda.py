"""NVIDIA devices through NVML: whole GPUs and MIG instances, each by its UUID."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from roundkit.host.devices.base import Binding, DeviceState, Reading
from roundkit.host.devices.limits import NO_LIMITS, DeviceLimits, limit_problem

_EXTRA = "install the extra: pip install 'roundkit[cluster]'"
_MIB = 1 << 20
_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
# Of what can lower the clocks, these are no fault of the moment: nothing to do, and the owner's own settings.
_NO_FAULT = ("GpuIdle", "ApplicationsClocksSetting", "UserDefinedClocks", "DisplayClockSetting")
_REASONS = (
    "SwPowerCap",
    "HwSlowdown",
    "SyncBoost",
    "SwThermalSlowdown",
    "HwThermalSlowdown",
    "HwPowerBrakeSlowdown",
)


class CudaPlatform:
    """GPUs and MIG instances, as ``nvidia-smi -L`` names them: ``GPU-…`` and ``MIG-…``."""

    name = "cuda"

    def list(self) -> tuple[str, ...]:
        """Return every device that a trial could have: a GPU, or each instance of one in MIG mode."""
        nvml = _library()
        if isinstance(nvml, str):
            return ()
        found: list[str] = []
        try:
            with _session(nvml):
                for index in range(nvml.nvmlDeviceGetCount()):
                    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
                    parts = [nvml.nvmlDeviceGetUUID(part) for part in _instances(nvml, gpu)]
                    found += parts or [nvml.nvmlDeviceGetUUID(gpu)]
        except nvml.NVMLError:
            return tuple(found)
        return tuple(found)

    def inspect(self, device: str) -> DeviceState:
        """Read one device: clocks, temperature, memory in use, processes, what slows it, its errors."""
        nvml = _library()
        if isinstance(nvml, str):
            return DeviceState(device, "no such device", {}, nvml)
        if not device.startswith(("GPU-", "MIG-")):
            return DeviceState(
                device,
                "no such device",
                {},
                f"{device!r} is no UUID; `nvidia-smi -L` prints those of this machine",
            )
        try:
            with _session(nvml):
                return _state(nvml, device)
        except nvml.NVMLError as error:
            return DeviceState(device, "no such device", {}, f"{device} cannot be read: {error}")

    def qualify(
        self, device: str, earlier: DeviceState | None = None, limits: DeviceLimits = NO_LIMITS
    ) -> DeviceState:
        """Refuse a device that is in use, slowed, beyond its limits, or another than before."""
        state = self.inspect(device)
        problem = state.problem or _moved(state, earlier) or limit_problem(state, limits)
        return DeviceState(device, state.identity, state.readings, problem)

    def bind(self, devices: Sequence[str]) -> Binding:
        """Name the devices by UUID, and give their device files and the driver's, and no other GPU's.

        Raises:
            OSError: a device was lost since it qualified.
        """
        nvml = _library()
        nodes: list[Path] = []
        if not isinstance(nvml, str):
            try:
                with _session(nvml):
                    for device in devices:
                        nodes += _nodes(nvml, device)
            except nvml.NVMLError as error:
                raise OSError(f"{', '.join(devices)} cannot be given to a trial: {error}") from error
        nodes += [Path(node) for node in _NODES]
        present = [node for node in dict.fromkeys(nodes) if node.is_char_device()]
        return Binding(
            nodes=tuple(present),
            env={"CUDA_VISIBLE_DEVICES": ",".join(devices), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        )


def _library() -> Any | str:
    """Return NVML's Python binding, or why there is none."""
    try:
        import pynvml
    except ImportError:
        return f"NVML cannot be asked: nvidia-ml-py is not installed; {_EXTRA}"
    return _started(pynvml)


def _started(nvml: ModuleType) -> Any | str:
    try:
        nvml.nvmlInit()
        nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        return f"NVML cannot be asked: {error}"
    return nvml


@contextmanager
def _session(nvml: Any) -> Iterator[None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _instances(nvml: Any, gpu: Any) -> list[Any]:
    """Return the handles of a GPU's MIG instances, none where it is not in MIG mode."""
    mode = _ask(nvml, lambda: nvml.nvmlDeviceGetMigMode(gpu)[0])
    if mode != nvml.NVML_DEVICE_MIG_ENABLE:
        return []
    count = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)
    by_index = partial(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu)
    handles = [_ask(nvml, partial(by_index, index)) for index in range(count)]
    return [handle for handle in handles if handle is not None]


def _gpu_of(nvml: Any, device: str) -> tuple[Any, Any]:
    """Return the handle of a device, and that of the GPU that it is, or is a part of."""
    handle = nvml.nvmlDeviceGetHandleByUUID(device)
    if not device.startswith("MIG-"):
        return handle, handle
    return handle, nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)


def _state(nvml: Any, device: str) -> DeviceState:
    handle, gpu = _gpu_of(nvml, device)
    name = nvml.nvmlDeviceGetName(handle)
    processes = _processes(nvml, handle)
    slowed = _slowed(nvml, gpu)
    uncorrected = _ask(
        nvml,
        lambda: nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
    )
    readings: dict[str, Reading] = {
        "temperature_c": _number(
            _ask(nvml, lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU))
        ),
        "clock_mhz": _number(_ask(nvml, lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))),
        "memory_clock_mhz": _number(
            _ask(nvml, lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM))
        ),
        "memory_used_mib": _number(_ask(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used / _MIB)),
        "power_w": _number(_ask(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000)),
        "ecc_uncorrected": _number(uncorrected),
        "slowed_by": None if slowed is None else ", ".join(slowed) or "nothing",
        "slowed_by_heat_s": _number(
            _ask(
                nvml,
                lambda: (
                    nvml.nvmlDeviceGetViolationStatus(gpu, nvml.NVML_PERF_POLICY_THERMAL).violationTime / 1e9
                ),
            )
        ),
        "processes": None if processes is None else float(len(processes)),
        "driver": _ask(nvml, nvml.nvmlSystemGetDriverVersion),
    }
    identity = f"{name}, {device}"
    return DeviceState(device, identity, readings, _problem(nvml, device, gpu, processes, slowed))


def _problem(
    nvml: Any, device: str, gpu: Any, processes: list[int] | None, slowed: list[str] | None
) -> str | None:
    if processes is None:
        return f"{device} does not tell who computes on it"
    if processes:
        listed = ", ".join(map(str, processes))
        return f"somebody computes on {device}: process {listed}"
    if not device.startswith("MIG-") and _instances(nvml, gpu):
        return f"{device} is split into MIG instances: name one of those"
    if slowed:
        return f"{device} is slowed by {', '.join(slowed)}"
    if _ask(nvml, lambda: nvml.nvmlDeviceGetRemappedRows(gpu)[3]):
        return f"{device} could not replace a broken row of its memory"
    return None


def _processes(nvml: Any, handle: Any) -> list[int] | None:
    """Return who computes on a device; None where it does not tell."""
    found: set[int] = set()
    plain = _ask(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    if plain is None:
        return None
    shared = _ask(nvml, lambda: nvml.nvmlDeviceGetMPSComputeRunningProcesses(handle)) or []
    found.update(int(process.pid) for process in (*plain, *shared))
    return sorted(found)


def _slowed(nvml: Any, gpu: Any) -> list[str] | None:
    """Return what lowers the clocks, beyond idleness and the owner's settings; None where it is not told."""
    bits = _ask(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu))
    if bits is None:  # what drivers before 535 call it
        bits = _ask(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
    if bits is None:
        return None
    names = [name for name in _REASONS if bits & getattr(nvml, f"nvmlClocksEventReason{name}")]
    for name in (*_NO_FAULT, *_REASONS):
        bits &= ~getattr(nvml, f"nvmlClocksEventReason{name}")
    return [*names, *([f"reason {bits:#x}"] if bits else [])]


def _moved(state: DeviceState, earlier: DeviceState | None) -> str | None:
    """Say what became another during an experiment, and must not have."""
    if earlier is None:
        return None
    if earlier.identity != state.identity:
        return f"the identity of {state.device} went from {earlier.identity} to {state.identity}"
    for what, said in (("ecc_uncorrected", "had memory errors"), ("slowed_by_heat_s", "was slowed by heat")):
        before, now = earlier.readings.get(what), state.readings.get(what)
        if isinstance(before, float) and isinstance(now, float) and now > before:
            return f"{state.device} {said} during the experiment: {what} went from {before:g} to {now:g}"
    if earlier.readings.get("driver") != state.readings.get("driver"):
        return f"the driver of {state.device} was replaced during the experiment"
    return None


def _nodes(nvml: Any, device: str) -> list[Path]:
    handle, gpu = _gpu_of(nvml, device)
    minor = nvml.nvmlDeviceGetMinorNumber(gpu)
    nodes = [Path(f"/dev/nvidia{minor}")]
    if handle is not gpu and device.startswith("MIG-"):
        instance, compute = (
            nvml.nvmlDeviceGetGpuInstanceId(handle),
            nvml.nvmlDeviceGetComputeInstanceId(handle),
        )
        folder = _CAPABILITIES / f"gpu{minor}" / "mig" / f"gi{instance}"
        for access in (folder / "access", folder / f"ci{compute}" / "access"):
            nodes += _capability(access)
    return nodes


def _capability(access: Path) -> list[Path]:
    """Return the device file that gives access to a MIG instance, as the driver says."""
    try:
        lines = access.read_text().splitlines()
    except OSError:
        return []
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    minor = told.get("DeviceFileMinor", "").strip()
    return [Path(f"/dev/nvidia-caps/nvidia-cap{minor}")] if minor.isdigit() else []


def _ask(nvml: Any, question: Callable[[], Any]) -> Any:
    """Return an answer, None where this device or driver does not have it; a lost device is an error."""
    try:
        return question()
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission, nvml.NVMLError_FunctionNotFound):
        return None
    except (nvml.NVMLError_NotFound, nvml.NVMLLibraryMismatchError):  # the latter of drivers that are too old
        return None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
