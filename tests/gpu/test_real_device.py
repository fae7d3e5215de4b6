"""K07 on a real device: found by UUID, qualified, and reached from inside by its own node alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundkit.core.clock import Deadline
from roundkit.host.confine import Limits, confined_execute
from roundkit.host.devices import platform_named

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
