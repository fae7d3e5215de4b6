"""What each process of a trial is granted: mounts, working folder, variables. Both sides get the same.

Inside, the checkout under test is always at ``/round/checkout``, so that neither its name nor its place
tells the sides apart. ``{python}``, ``{harness}``, ``{result}`` and ``{hash_seed}`` are replaced in
arguments and in the values of variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from roundkit.core.canonical import digest_json
from roundkit.core.resources import harness_folder
from roundkit.host.confine import Mount, Overlay
from roundkit.host.devices import Binding
from roundkit.measure.instruments import COUNT, counted_command
from roundkit.measure.materialized import Checkout
from roundkit.models.measurement import ProvisionRef
from roundkit.models.round_plan import FrozenRuntime
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import PlannedTrial, Role

CHECKOUT = Path("/round/checkout")
SCRATCH = Path("/round/scratch")
TRIAL = Path("/round/trial")
PROVISION = Path("/round/provision")
RESULT_NAME = "result.json"
OUTPUTS_NAME = "outputs"
HARNESS_ROOT = Path("/opt/roundkit")

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_HASH_SEEDS = 4294967295


@dataclass(frozen=True)
class Grant:
    """Everything that one confined process of a trial is given."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    writable: tuple[Mount, ...]
    readable: tuple[Mount, ...]
    cwd: Path = CHECKOUT
    overlay: Overlay | None = None
    devices: tuple[Path, ...] = ()


@dataclass(frozen=True)
class TrialFiles:
    """What one side's trials see, prepared anew for each pair.

    Attributes:
        checkout: Fresh copy of the side's built checkout, with mount points for protected files.
        protected: The incumbent's protected files, mounted over it.
        driver_checkout: The protected files alone: what the driver sees.
        validator_checkout: Protected and hidden files alone: what the validator sees.
        provision: What the plan's ``provision`` command made, where it has one.
    """

    checkout: Checkout
    protected: tuple[Mount, ...]
    driver_checkout: Path
    validator_checkout: Path
    provision: tuple[Mount, ...] = ()


@dataclass(frozen=True)
class TrialFolders:
    """The private folders of one trial, each writable for one process.

    Attributes:
        trial: Where the result and the outputs go.
        scratch: Of the process that writes the result.
        worker_scratch: Of the worker.
        validator_scratch: Of the validator.
        count: Where valgrind leaves its counts, where it is the round's tool.
    """

    trial: Path
    scratch: Path
    worker_scratch: Path
    validator_scratch: Path
    count: Path

    @classmethod
    def at(cls, folder: Path) -> TrialFolders:
        """Name them, without making them."""
        return cls(
            folder / "trial", folder / "scratch", folder / "worker", folder / "validator", folder / "count"
        )

    @classmethod
    def make(cls, folder: Path) -> TrialFolders:
        """Make them, empty, in a folder that does not exist yet."""
        folder.mkdir()
        folder.chmod(0o711)
        folders = cls.at(folder)
        for path in (folders.trial, folders.trial / OUTPUTS_NAME, folders.scratch, folders.worker_scratch):
            path.mkdir()
        folders.validator_scratch.mkdir()
        folders.count.mkdir()
        return folders


@dataclass(frozen=True)
class TrialBoundary:
    """Builds the grants of one trial's processes.

    Attributes:
        spec: How a trial runs.
        planned: Which trial this is.
        files: What the side's trials see.
        folders: The trial's private folders.
        binding: What reaches the devices.
    """

    spec: RunSpec
    planned: PlannedTrial
    files: TrialFiles
    folders: TrialFolders
    binding: Binding

    def single(self) -> Grant:
        """Grant the one process of a single-process benchmark."""
        assert self.spec.benchmark.argv is not None
        grant = self._grant(
            self.spec.benchmark.argv,
            readable=(*self.files.checkout.mounts(CHECKOUT), *self.files.protected),
            overlay=self.files.checkout.overlay(CHECKOUT, writable=False),
            writable=(Mount(self.folders.trial, TRIAL), Mount(self.folders.scratch, SCRATCH)),
            env=self._result_variables(),
            on_device=True,
        )
        return self._counted(grant)

    def driver(self) -> Grant:
        """Grant the driver: no file of the candidate, but the result."""
        assert self.spec.benchmark.driver is not None
        return self._grant(
            self.spec.benchmark.driver,
            readable=(Mount(self.files.driver_checkout, CHECKOUT),),
            writable=(Mount(self.folders.trial, TRIAL), Mount(self.folders.scratch, SCRATCH)),
            env=self._result_variables(),
        )

    def worker(self) -> Grant:
        """Grant the worker: the checkout, but neither the result nor the seed of the inputs."""
        assert self.spec.benchmark.worker is not None
        grant = self._grant(
            self.spec.benchmark.worker,
            readable=(*self.files.checkout.mounts(CHECKOUT), *self.files.protected),
            overlay=self.files.checkout.overlay(CHECKOUT, writable=False),
            writable=(Mount(self.folders.worker_scratch, SCRATCH),),
            env={},
            on_device=True,
        )
        return self._counted(grant)

    def validator(self) -> Grant:
        """Grant the validator: protected and hidden files, and the trial's folder to read."""
        assert self.spec.validator is not None
        return self._grant(
            self.spec.validator.argv,
            readable=(Mount(self.files.validator_checkout, CHECKOUT), Mount(self.folders.trial, TRIAL)),
            writable=(Mount(self.folders.validator_scratch, SCRATCH),),
            env=self._result_variables(),
        )

    def grants(self) -> dict[Role, Grant]:
        """Return the grant of every process that the trial has."""
        granted: dict[Role, Grant]
        if self.spec.benchmark.single_process:
            granted = {"benchmark": self.single()}
        else:
            granted = {"driver": self.driver(), "worker": self.worker()}
        return granted if self.spec.validator is None else {**granted, "validator": self.validator()}

    def _counted(self, grant: Grant) -> Grant:
        """Wrap the process that runs the candidate, where its instructions are counted."""
        tool = self.spec.counting_tool
        if tool is None:
            return grant
        counts = (Mount(self.folders.count, COUNT),) if tool == "valgrind" else ()
        return replace(grant, argv=counted_command(tool, grant.argv), writable=(*grant.writable, *counts))

    def _result_variables(self) -> dict[str, str]:
        return {
            "ROUNDKIT_RESULT_PATH": str(TRIAL / RESULT_NAME),
            "ROUNDKIT_OUTPUT_DIR": str(TRIAL / OUTPUTS_NAME),
            "ROUNDKIT_SEED": str(self.planned.seed),
            "ROUNDKIT_REPETITIONS": str(self.spec.repetitions),
        }

    def _grant(
        self,
        argv: Iterable[str],
        *,
        readable: tuple[Mount, ...],
        writable: tuple[Mount, ...],
        env: Mapping[str, str],
        overlay: Overlay | None = None,
        on_device: bool = False,
    ) -> Grant:
        seed = hash_seed(self.spec.round_digest, self.planned.pair)
        device = self.binding if on_device else Binding()
        return Grant(
            argv=expand(argv, self.spec.runtime, seed),
            env={**expand_environment(self.spec, seed), **device.env, **env},
            writable=writable,
            readable=(
                *readable,
                *self.files.provision,
                *standing_mounts(self.spec.runtime),
                *device.readable,
            ),
            overlay=overlay,
            devices=device.nodes,
        )


def hash_seed(round_digest: str, pair: int | None) -> int:
    """Return what ``{hash_seed}`` stands for: the same on both sides of a pair, another in the next.

    It reaches the candidate, so it is not made from the seed of the inputs: who knows those can answer
    before the clock starts.
    """
    return int(digest_json(["hash-seed", round_digest, pair])[:8], 16) % _HASH_SEEDS


def expand(argv: Iterable[str], runtime: FrozenRuntime, seed: int) -> tuple[str, ...]:
    """Replace the placeholders in a command's words."""
    return tuple(_expand_word(word, runtime, seed) for word in argv)


def expand_environment(spec: RunSpec, seed: int) -> dict[str, str]:
    """Return the plan's variables with the placeholders in their values replaced."""
    return {name: _expand_word(value, spec.runtime, seed) for name, value in spec.environment.items()}


def provision_mounts(provision: ProvisionRef | None) -> tuple[Mount, ...]:
    """Return the read-only mount of what the round's ``provision`` command made, if it has one."""
    return () if provision is None else (Mount(Path(provision.path).resolve(), PROVISION),)


def standing_mounts(runtime: FrozenRuntime) -> tuple[Mount, ...]:
    """Return what is readable in every boundary: the plan's folders, the interpreter, the harness."""
    inside = HARNESS_ROOT / "roundkit" / "harness"
    return (*runtime_mounts(runtime), Mount(harness_folder(), inside))


def runtime_mounts(runtime: FrozenRuntime) -> tuple[Mount, ...]:
    """Return the plan's folders and the interpreter's, but for the system's own, which every boundary has."""
    granted: dict[Path, Mount] = {}
    for path in (*map(Path, runtime.readable), *_interpreter_folders(Path(runtime.python))):
        if not any(path.is_relative_to(top) for top in (*_SYSTEM, *map(str, granted))):
            granted[path] = Mount(path.resolve(), path)
    return tuple(granted.values())


def _interpreter_folders(python: Path) -> list[Path]:
    """Return the environment that an interpreter belongs to, and the installation behind it."""
    folders = [python.resolve().parent.parent]
    if (python.parent.parent / "pyvenv.cfg").is_file():
        folders.append(python.parent.parent)
    return folders


def _expand_word(word: str, runtime: FrozenRuntime, seed: int) -> str:
    for name, value in (
        ("python", runtime.python),
        ("harness", str(HARNESS_ROOT)),
        ("result", str(TRIAL / RESULT_NAME)),
        ("hash_seed", str(seed)),
    ):
        word = word.replace(f"{{{name}}}", value)
    return word
