"""Real places, real users, real attacks: what the confinement tests share."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pydantic
import pytest

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refusal, Refused
from roundkit.host.confine import (
    ConfinementUnavailable,
    Execution,
    Limits,
    Mount,
    Network,
    Overlay,
    confined_execute,
    sweep,
)

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
ORDINARY_UID = 2713
PYTHON = "/usr/bin/python3"
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/home/somebody", "LANG": "C.UTF-8"}
SECRET = b"the coordinator's own"


def limits(**changed: object) -> Limits:
    """Limits that no test reaches unless it wants to."""
    given: dict[str, object] = {
        "output_bytes": 1 << 20,
        "output_kill_bytes": 8 << 20,
        "file_bytes": 64 << 20,
        "open_files": 512,
        "tmp_bytes": 8 << 20,
    }
    return Limits.model_validate({**given, **changed})


def reachable(path: Path) -> bool:
    """Say whether a user without any rights can get at a path."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


@dataclass
class World:
    """A host as a coordinator has it: what a candidate may touch, and what it must not.

    Attributes:
        root: Folder that holds all of it.
        mode: ``root`` or ``user``: who starts the confined commands.
    """

    root: Path
    mode: str
    posture: str = "build"
    fingerprints: dict[str, str] = field(default_factory=dict)

    @property
    def checkout(self) -> Path:
        return self.root / "candidate"

    @property
    def scratch(self) -> Path:
        return self.checkout / "scratch"

    @property
    def trial(self) -> Path:
        return self.root / "trial"

    @property
    def protected(self) -> Path:
        return self.root / "incumbent" / "bench" / "benchmark.py"

    def grants(self) -> tuple[list[Path | Mount], list[Path | Mount]]:
        """Return what a build step or a trial is given: (writable, readable)."""
        over = Mount(self.protected, self.checkout / "bench" / "benchmark.py")
        if self.posture == "build":
            return [self.checkout, self.trial], [over]
        return [self.scratch, self.trial], [self.checkout, over]

    def run(
        self,
        *argv: str,
        writable: list[Path | Mount] | None = None,
        readable: list[Path | Mount] | None = None,
        deadline_s: float = 30,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        cpus: set[int] | None = None,
        network: Network = Network.none(),  # noqa: B008 - frozen
        overlay: Overlay | None = None,
        actor: subprocess.Popen[str] | None = None,
        **limit: object,
    ) -> Execution:
        """Run one confined command as this world's coordinator."""
        granted = self.grants()
        writable = granted[0] if writable is None else writable
        readable = granted[1] if readable is None else readable
        asked = limits(**limit)
        where = self.trial if cwd is None else cwd
        variables = ENV if env is None else env
        if actor is None and (self.mode == "root" or os.geteuid() != 0):
            return confined_execute(
                argv,
                cwd=where,
                writable=writable,
                readable=readable,
                deadline=Deadline.after(deadline_s),
                env=variables,
                limits=asked,
                cpus=None if cpus is None else frozenset(cpus),
                network=network,
                overlay=overlay,
            )
        request = {
            "argv": argv,
            "cwd": str(where),
            "writable": [pair(item) for item in writable],
            "readable": [pair(item) for item in readable],
            "deadline_s": deadline_s,
            "env": variables,
            "limits": asked.model_dump_json(),
            "cpus": None if cpus is None else sorted(cpus),
            "network": network.kind,
            "hosts": network.hosts,
            "overlay": None if overlay is None else layers_of(overlay),
        }
        return ask(standing_actor() if actor is None else actor, request)

    def coordinator(self) -> int:
        """Return the process id of whoever runs this world's commands."""
        return os.getpid() if self.mode == "root" or os.geteuid() != 0 else standing_actor().pid

    def python(self, script: str, *arguments: str, **options: object) -> Execution:
        """Run a script of the ``payloads`` folder, or literal source, inside."""
        path = HERE / "payloads" / script
        source = path.read_text() if script.endswith(".py") else script
        return self.run(PYTHON, "-c", source, *arguments, **options)  # type: ignore[arg-type]

    def attempts(self, script: str, *arguments: str, **options: object) -> dict[str, str]:
        """Run a script that tries things and prints what came of each."""
        done = self.python(script, *arguments, **options)
        assert done.end_reason == "exited", done
        assert done.exit_code == 0, done.stderr_tail
        assert done.stdout_tail is not None
        told: dict[str, str] = json.loads(done.stdout_tail)
        return told

    @staticmethod
    def limits(**changed: object) -> Limits:
        """Limits that nothing reaches but what is changed."""
        return limits(**changed)

    @staticmethod
    def limits_json() -> str:
        """Write the same as text."""
        return limits().model_dump_json()

    @staticmethod
    def wait_until(holds: Callable[[], bool], within_s: float = 30) -> None:
        """Wait for a state of the machine."""
        until = Deadline.after(within_s)
        while not holds():
            assert not until.expired(), "the state was never reached"
            time.sleep(0.01)

    def remember(self) -> None:
        """Take the fingerprint of everything that a candidate must not change."""
        self.fingerprints = self._fingerprints()

    def changed(self) -> set[str]:
        """Return what changed since :meth:`remember`, among what a candidate must not change."""
        now = self._fingerprints()
        before = self.fingerprints
        return {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}

    def _fingerprints(self) -> dict[str, str]:
        found = {}
        for top in ("store", "incumbent", "campaign", "other-lane", "other-trial", "home"):
            for path in [self.root / top, *sorted((self.root / top).rglob("*"))]:
                state = path.lstat()
                content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                found[str(path)] = f"{state.st_mode} {state.st_uid} {state.st_nlink} {content}"
        return found


def pair(item: Path | Mount) -> tuple[str, str]:
    """Write a granted place as (source, at)."""
    return (str(item.source), str(item.at)) if isinstance(item, Mount) else (str(item), str(item))


def layers_of(overlay: Overlay) -> tuple[list[str], str, str | None]:
    """Write an overlay as (layers, at, changes)."""
    changes = None if overlay.changes is None else str(overlay.changes)
    return list(map(str, overlay.layers)), str(overlay.at), changes


def ordinary_python() -> tuple[str, str]:
    """Return an interpreter and a PYTHONPATH that an ordinary user can use, or skip."""
    packages = Path(pydantic.__file__).parents[1]
    if not (reachable(REPOSITORY / "roundkit" / "x") and reachable(packages / "x")):
        pytest.skip("the repository or its environment cannot be reached by an ordinary user")
    interpreter = Path(sys.executable).resolve()
    if not reachable(interpreter):
        interpreter = Path(PYTHON)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if not interpreter.exists() or interpreter.resolve().name != f"python{version}":
            pytest.skip(f"no Python {version} that an ordinary user can execute")
    return str(interpreter), f"{REPOSITORY}:{packages}"


def start_actor(
    *before: str, env: dict[str, str] | None = None, as_root: bool = False
) -> subprocess.Popen[str]:
    """Start an actor as an ordinary user without groups or capabilities, or as root."""
    interpreter, path = ordinary_python()
    drop = [
        "setpriv",
        f"--reuid={ORDINARY_UID}",
        f"--regid={ORDINARY_UID}",
        "--clear-groups",
        "--inh-caps=-all",
    ]
    given = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin", **(env or {})}
    return subprocess.Popen(
        [*(drop if os.geteuid() == 0 and not as_root else ()), *before, interpreter, str(HERE / "actor.py")],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env=given,
    )


@cache
def standing_actor() -> subprocess.Popen[str]:
    """Return the one actor that serves all tests; it leaves at the end of its input."""
    return start_actor()


def ask(actor: subprocess.Popen[str], asked: dict[str, object]) -> Execution:
    """Have an actor run one confined command."""
    actor.stdin.write(json.dumps(asked) + "\n")
    actor.stdin.flush()
    told = json.loads(actor.stdout.readline())
    if "unavailable" in told:
        raise ConfinementUnavailable(*told["unavailable"])
    if "refused" in told:
        raise Refused(Refusal(code, message) for code, message in told["refused"])
    return Execution.model_validate(told)


@pytest.fixture(scope="session", autouse=True)
def _end_standing_actor() -> Iterator[None]:
    yield
    if standing_actor.cache_info().currsize:
        standing_actor().communicate()


def build_world(root: Path, mode: str) -> World:
    """Lay out a host with secrets beside what a candidate is given."""
    world = World(root, mode)
    for folder in ("store", "campaign/.git", "other-lane", "other-trial", "home/.ssh", "incumbent/bench"):
        (root / folder).mkdir(parents=True)
    for folder in ("candidate/bench", "candidate/scratch", "candidate/src", "trial"):
        (root / folder).mkdir(parents=True)
    # Readable for everybody on purpose: only the boundary hides them.
    for secret in ("store/round.db", "campaign/.git/config", "other-lane/patch", "other-trial/result.json"):
        (root / secret).write_bytes(SECRET)
    (root / "home/.ssh/id_ed25519").write_bytes(SECRET)
    world.protected.write_text("print('honest')\n")
    (world.checkout / "bench" / "benchmark.py").write_text("print('honest')\n")
    (world.checkout / "src" / "program.py").write_text("print('candidate')\n")
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        if os.geteuid() == 0 and mode == "user":
            os.chown(path, ORDINARY_UID, ORDINARY_UID)
    world.remember()
    return world


@pytest.fixture
def make_world() -> Iterator[Callable[[str], World]]:
    """Build worlds in a folder that every user can enter; pytest's own is closed to others."""
    made: list[Path] = []

    def make(mode: str) -> World:
        if mode == "root" and os.geteuid() != 0:
            pytest.skip("must be started by root")
        if mode == "user" and os.geteuid() == 0:
            ordinary_python()
        root = Path(tempfile.mkdtemp(prefix="rk-world-", dir="/var/tmp")).resolve()
        made.append(root)
        return build_world(root, mode)

    yield make
    for root in made:
        # Whatever commands left: closed folders, and trees deeper than Python would go.
        subprocess.run(["chmod", "-R", "u+rwX", root], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", root], check=True)
    sweep()


@pytest.fixture(params=["root", "user"])
def world(request: pytest.FixtureRequest, make_world: Callable[[str], World]) -> World:
    """A host whose coordinator is root, and one whose coordinator is an ordinary user."""
    return make_world(request.param)


@pytest.fixture
def any_world(make_world: Callable[[str], World]) -> World:
    """A host whose coordinator is whoever runs the tests."""
    return make_world("root" if os.geteuid() == 0 else "user")


@pytest.fixture(params=["build", "trial"])
def attacked(request: pytest.FixtureRequest, world: World) -> World:
    """A host that is attacked from a build step, and one that is attacked from a trial."""
    world.posture = request.param
    return world


@pytest.fixture
def refused() -> Callable[..., str]:
    """Call something that must be refused, and return the code of the refusal."""

    def call(function: Callable[..., object], *arguments: object, **options: object) -> str:
        with pytest.raises(Refused) as caught:
            function(*arguments, **options)
        return caught.value.refusals[0].code

    return call


@pytest.fixture
def new_actor() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start actors of one's own: under a wrapper, or with another environment."""
    started: list[subprocess.Popen[str]] = []

    def start(
        *before: str, env: dict[str, str] | None = None, as_root: bool = False
    ) -> subprocess.Popen[str]:
        started.append(start_actor(*before, env=env, as_root=as_root))
        return started[-1]

    yield start
    for actor in started:
        actor.communicate()
