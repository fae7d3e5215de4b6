"""What ``roundkit doctor`` looks at: every layer of the boundary, and whether it holds under attack."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.host.confine import ConfinementUnavailable, Execution, Limits, confined_execute
from roundkit.host.confine.backend import find_backend
from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.diagnose import examine
from roundkit.host.confine.identity import take_identity
from roundkit.host.confine.seccomp import architecture

_OLDEST_GIT = (2, 25)
_OLDEST_PYTHON = (3, 11)
_WITHIN_S = 60.0
_MIB = 1 << 20
PROBE_LIMITS = Limits(
    output_bytes=_MIB,
    output_kill_bytes=_MIB,
    file_bytes=_MIB,
    open_files=64,
    memory_bytes=1024 * _MIB,
    pids=64,
    tmp_bytes=_MIB,
)
_ATTACK = """
import json, os, socket, sys
target, secret, port, pid = sys.argv[1:5]
def attempt(action):
    try: action()
    except OSError: return False
    return True
def write():
    with open(target, "w") as stream: stream.write("reached")
def read():
    with open(secret, "rb") as stream: stream.read()
def see():
    if [name for name in os.listdir("/proc") if name.isdigit() and int(name) > 9]: return
    os.stat("/proc/" + pid + "/cwd")
print(json.dumps({
    "write outside": attempt(write),
    "read a file of the coordinator": attempt(read),
    "connect to a service on the host's loopback": attempt(
        lambda: socket.create_connection(("127.0.0.1", int(port)), 2).close()),
    "see processes of the host": attempt(see),
}))
"""


class Layer(BaseModel):
    """One layer of what roundkit needs from the host.

    Attributes:
        name: What a person calls it.
        present: Whether it is there and works.
        needed: Whether nothing can be run without it.
        detail: What was found.
        remedy: What helps if it is missing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    present: bool
    needed: bool = True
    detail: str = ""
    remedy: str = ""


def probe_confinement() -> list[Layer]:
    """Look at every layer that confined commands need, and attack the boundary once for real.

    Returns:
        The layers in the order in which they build on one another. Never raises for what is missing.
    """
    layers = [_python(), _git(), _machine()]
    layers += _boundary()
    layers += _groups()
    if all(layer.present or not layer.needed for layer in layers):
        layers += _escape()
    return layers


def _python() -> Layer:
    return Layer(
        name="Python",
        present=sys.version_info[:2] >= _OLDEST_PYTHON,
        detail=platform.python_version(),
        remedy="use Python 3.11 or newer",
    )


def _git() -> Layer:
    remedy = f"install git {'.'.join(map(str, _OLDEST_GIT))} or newer, such as apt-get install git"
    path = shutil.which("git")
    if path is None:
        return Layer(name="git", present=False, detail="there is no git on the PATH", remedy=remedy)
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    match = re.search(r"(\d+)\.(\d+)", told)
    new_enough = match is not None and (int(match[1]), int(match[2])) >= _OLDEST_GIT
    return Layer(name="git", present=new_enough, detail=told, remedy=remedy)


def _machine() -> Layer:
    try:
        found = architecture()
    except ConfinementUnavailable as error:
        return _missing("system call table", error)
    return Layer(name="system call table", present=True, detail=found.machine)


def _missing(name: str, error: ConfinementUnavailable) -> Layer:
    return Layer(name=name, present=False, detail=f"[{error.reason}] {error.detail}", remedy=error.remedy)


def _boundary() -> Iterator[Layer]:
    try:
        backend = find_backend()
    except ConfinementUnavailable as error:
        yield _missing("bubblewrap", error)
        return
    yield Layer(name="bubblewrap", present=True, detail=f"{backend.version} at {backend.path}")
    with ExitStack() as stack:
        try:
            identity = take_identity(backend.path, stack)
        except ConfinementUnavailable as error:
            yield _missing("user of the commands", error)
            return
        for name, fault in examine(identity.prefix):
            yield Layer(name=name, present=True) if fault is None else _missing(name, fault)


def _groups() -> Iterator[Layer]:
    group = Cgroup(PROBE_LIMITS)
    group.close()
    for limit, instead in (("memory", "the address space of each process"), ("pids", "the user's processes")):
        by = group.enforced.get(limit)
        yield Layer(
            name=f"cgroup for {limit}",
            present=by is not None,
            needed=False,
            detail=by or f"not writable; a limit bounds {instead} instead",
            remedy="run as root or under a delegated cgroup, if a plan requires this limit for the whole run",
        )


def _escape() -> Iterator[Layer]:
    """Attack the boundary from inside; what gets through is a missing layer."""
    with tempfile.TemporaryDirectory(prefix="roundkit-probe-") as folder, socket.socket() as service:
        base = Path(folder).resolve()
        (base / "given").mkdir()
        (base / "secret").write_text("the coordinator's")
        service.bind(("127.0.0.1", 0))
        service.listen()
        arguments = (
            str(base / "reached"),
            str(base / "secret"),
            str(service.getsockname()[1]),
            str(os.getpid()),
        )
        try:
            done = _run_attack(base / "given", arguments)
        except ConfinementUnavailable as error:
            yield _missing("boundary", error)
            return
        except Refused as error:
            yield Layer(name="boundary", present=False, detail=str(error))
            return
        whole = done.exit_code == 0 and done.stdout_tail is not None
        yield Layer(name="boundary", present=whole, detail="a command ran inside" if whole else _told(done))
        if not whole or done.stdout_tail is None:
            return
        got_through: dict[str, bool] = json.loads(done.stdout_tail)
        # A private folder of the same name may take the write; what counts is whether it came out.
        got_through["write outside"] = (base / "reached").exists()
    for attempt, succeeded in got_through.items():
        yield Layer(
            name=f"escape: {attempt}",
            present=not succeeded,
            detail="got through" if succeeded else "denied",
            remedy="do not run candidates on this host; report what it is",
        )


def _told(done: Execution) -> str:
    return f"{done.end_reason}: {done.detail or done.stderr_tail}"


def _run_attack(given: Path, arguments: tuple[str, ...]) -> Execution:
    interpreter = Path(sys.executable).resolve()
    home = Path(sys.base_prefix).resolve()
    return confined_execute(
        [str(interpreter), "-I", "-S", "-c", _ATTACK, *arguments],
        cwd=given,
        writable=[given],
        readable=[] if home.is_relative_to("/usr") else [home],
        deadline=Deadline.after(_WITHIN_S),
        env={},
        limits=PROBE_LIMITS,
    )
