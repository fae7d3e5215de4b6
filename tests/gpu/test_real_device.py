"""K07 on a real device: found by UUID, qualified, and reached from inside by its own node alone."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.killing import wait_for

from roundkit.core.clock import Deadline
from roundkit.host.confine import Limits, confined_execute
from roundkit.host.devices import DeviceLimits, platform_named

pytestmark = pytest.mark.gpu

CUDA = platform_named("cuda")
_LIMITS = Limits(
    output_bytes=1 << 16, output_kill_bytes=1 << 20, file_bytes=1 << 20, open_files=256, tmp_bytes=1 << 24
)
# The driver itself, without any toolkit: how many devices it sees, and the first one's UUID.
_ASK = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0, "cuInit"
count, uuid, device = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_int()
assert cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
get = getattr(cuda, "cuDeviceGetUuid_v2", cuda.cuDeviceGetUuid)
assert get(uuid, device) == 0
print(count.value, bytes(uuid).hex())
"""


@pytest.fixture(scope="module")
def device() -> str:
    found = CUDA.list()
    assert found, CUDA.inspect("GPU-any").problem
    return found[0]


def test_k07_the_real_device_tells_its_readings(device: str) -> None:
    state = CUDA.qualify(device)
    assert device in state.identity
    assert isinstance(state.readings["temperature_c"], float)
    assert isinstance(state.readings["clock_mhz"], float)
    again = CUDA.qualify(device, state)
    assert again.identity == state.identity
    print(state)


def test_k07_the_real_device_is_reached_from_inside_the_boundary(device: str, open_folder: Path) -> None:
    (open_folder / "work").mkdir()
    bound = CUDA.bind([device])
    done = confined_execute(
        ["/usr/bin/python3", "-I", "-S", "-c", _ASK],
        cwd=open_folder / "work", writable=[open_folder / "work"], readable=bound.readable,
        devices=bound.nodes, deadline=Deadline.after(60), env=dict(bound.env), limits=_LIMITS,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr_tail
    count, uuid = (done.stdout_tail or "").split()
    assert count == "1"
    assert device.startswith("MIG-") or uuid == device.removeprefix("GPU-").replace("-", "")


# Holds a context and some memory on the first device until its input ends.
_COMPUTE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), 256 << 20) == 0
print("computes", flush=True)
sys.stdin.read()
"""


def test_k07_every_reading_of_the_real_device_is_of_its_kind(device: str) -> None:
    readings = dict(CUDA.inspect(device).readings)
    print(readings)
    words = {name: readings.pop(name) for name in ("slowed_by", "driver")}
    assert isinstance(words["driver"], str)
    assert words["slowed_by"] is not None
    # What this device does not have is null; whatever it has is a number in its range.
    assert all(value is None or value >= 0.0 for value in readings.values())  # type: ignore[operator]
    for name in ("processes", "memory_used_mib", "temperature_c", "clock_mhz"):
        assert readings[name] is not None, name
    assert CUDA.qualify(device, None, DeviceLimits(max_temperature_c=0.0)).problem is not None


def test_k07_somebody_who_computes_on_the_real_device_is_seen_and_gone_again(device: str) -> None:
    assert CUDA.qualify(device).problem is None
    before = CUDA.inspect(device).readings["memory_used_mib"]
    assert isinstance(before, float)
    other = subprocess.Popen(
        ["/usr/bin/python3", "-I", "-S", "-c", _COMPUTE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": device},
    )  # fmt: skip
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "computes\n"
        busy = CUDA.qualify(device)
        assert f"process {other.pid}" in (busy.problem or "")
        used = busy.readings["memory_used_mib"]
        assert isinstance(used, float)
        assert used >= before + 256
    finally:
        other.communicate()
    wait_for(lambda: CUDA.qualify(device).problem is None, "a free device")


def test_k07_no_other_devices_file_is_inside_the_boundary(device: str, open_folder: Path) -> None:
    (open_folder / "work").mkdir()
    bound = CUDA.bind([device])
    done = confined_execute(
        ["/usr/bin/python3", "-I", "-S", "-c", "import glob; print(*sorted(glob.glob('/dev/nvidia*')))"],
        cwd=open_folder / "work", writable=[open_folder / "work"], readable=bound.readable,
        devices=bound.nodes, deadline=Deadline.after(60), env=dict(bound.env), limits=_LIMITS,
    )  # fmt: skip
    inside = {path for path in (done.stdout_tail or "").split() if re.fullmatch(r"/dev/nvidia\d+", path)}
    assert len(inside) == 1
    assert inside <= {str(node) for node in bound.nodes}
