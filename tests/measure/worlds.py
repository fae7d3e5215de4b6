"""A tiny program with a benchmark in both shapes, built checkouts of it, and trials on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from roundkit.core.files import tree_digest
from roundkit.core.globs import GlobSet
from roundkit.host.confine import Limits
from roundkit.host.devices import Binding
from roundkit.measure.boundary import CHECKOUT, TrialFiles
from roundkit.measure.boundary_book import BoundaryBook
from roundkit.measure.materialized import Checkout
from roundkit.measure.protect import copy_matching, plan_protection
from roundkit.measure.trial import run_trial
from roundkit.models.campaign import Benchmark, Command, Metric
from roundkit.models.measurement import MeasurementRequest, SideRef
from roundkit.models.round_plan import DeviceSet, FrozenRuntime, Gates
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import PlannedTrial, Side, Trial
from roundkit.rules.schedule import plan_schedule

# Started by root, a confined command runs as another user, who cannot reach an interpreter below /root.
PYTHON = "/usr/bin/python3"

# A single-process benchmark reports what it measured; the harness does the same with two processes.
PROGRAM: dict[str, str] = {
    "prog/__init__.py": "",
    "prog/core.py": "def work(payload):\n    return sum(range(payload['n']))\n",
    "bench/driver.py": """\
from roundkit.harness import driver

def run(session):
    for repetition in range(session.repetitions):
        request = {"n": 1000 + session.random(repetition).randrange(10)}
        with session.timed():
            answer = session.call("work", request)
        session.save(f"repetition-{repetition}", {"request": request, "answer": answer})

driver(run)
""",
    "bench/worker.py": "from roundkit.harness import worker\n\nworker({'work': 'prog.core:work'})\n",
    "bench/single.py": """\
import json, os, sys, time
sys.path.append(os.getcwd())
from prog.core import work
timings = []
for repetition in range(int(os.environ["ROUNDKIT_REPETITIONS"])):
    request = {"n": 1000 + repetition}
    started = time.perf_counter()
    answer = work(request)
    timings.append((time.perf_counter() - started) * 1000)
    with open(os.environ["ROUNDKIT_OUTPUT_DIR"] + f"/repetition-{repetition}.json", "w") as stream:
        json.dump({"request": request, "answer": answer}, stream)
with open(os.environ["ROUNDKIT_RESULT_PATH"], "w") as stream:
    json.dump({"metrics": {"latency_ms": timings, "checks": 3}}, stream)
""",
    "bench/validate.py": """\
import json, os, pathlib, sys
hidden = json.loads(pathlib.Path("bench/hidden/answers.json").read_text())
outputs = sorted(pathlib.Path(os.environ["ROUNDKIT_OUTPUT_DIR"]).glob("*.json"))
saved = [json.loads(path.read_text()) for path in outputs]
right = [item["answer"] == sum(range(item["request"]["n"])) + hidden["offset"] for item in saved]
if not right or not all(right):
    print("wrong answer", file=sys.stderr)
    sys.exit(1)
""",
    "bench/hidden/answers.json": '{"offset": 0}',
}
PROTECTED = ("bench/**", "conftest.py")
HIDDEN = ("bench/hidden/**",)
LIMITS = Limits(
    output_bytes=1 << 16,
    output_kill_bytes=1 << 22,
    file_bytes=1 << 26,
    disk_bytes=1 << 25,
    disk_files=1000,
    open_files=256,
    memory_bytes=1 << 29,
    pids=64,
    tmp_bytes=1 << 24,
)
SINGLE = Benchmark(
    argv=("{python}", "-s", "-P", "bench/single.py"),
    timeout_s=30,
    instrument="reported",
    clock_tolerance=0.05,
)
PAIR = Benchmark(
    driver=("{python}", "-s", "-P", "bench/driver.py"),
    worker=("{python}", "-s", "-P", "bench/worker.py"),
    timeout_s=30,
    instrument="reported",
    clock_tolerance=0.05,
)
VALIDATOR = Command(argv=("{python}", "-s", "-P", "bench/validate.py"), timeout_s=30)
METRIC = Metric(name="latency_ms", unit="ms", direction="lower")


def make_spec(
    benchmark: Benchmark = PAIR,
    *,
    validator: Command | None = None,
    metric: Metric = METRIC,
    limits: Limits = LIMITS,
    protected: tuple[str, ...] = PROTECTED,
    pin_cpus: bool = False,
) -> RunSpec:
    return RunSpec(
        format="roundkit-run-spec/1",
        round_digest="0" * 64,
        metric=metric,
        benchmark=benchmark,
        validator=validator,
        runtime=FrozenRuntime(python=PYTHON, readable=()),
        environment={"PYTHONPATH": "{harness}", "HOME": "/round/scratch", "PYTHONHASHSEED": "{hash_seed}"},
        limits=limits,
        protected_paths=protected,
        hidden_paths=HIDDEN,
        gates=Gates(
            ab_ba_pairs=6,
            repetitions=2,
            min_gain=0.01,
            loss_margin=0.01,
            sigma_min=2.0,
            order_margin=0.0,
            remeasure_limit=1,
        ),
        repetitions=2,
        pin_cpus=pin_cpus,
    )


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def planned(side: Side = "candidate", *, pair: int | None = 0, seed: int = 7) -> PlannedTrial:
    return PlannedTrial(index=0, pair=pair, quad=0, side=side, order="AB", seed=seed)


@dataclass
class World:
    """Built checkouts below one folder, and what runs on them."""

    root: Path
    spec: RunSpec = field(default_factory=make_spec)

    def __post_init__(self) -> None:
        self.incumbent = write_tree(self.root / "incumbent", PROGRAM)

    def candidate(self, changes: Mapping[str, str], name: str = "candidate") -> Path:
        """Build a checkout of the incumbent with some files changed."""
        return write_tree(self.root / name, {**PROGRAM, **changes})

    def files_of(self, built: Path) -> TrialFiles:
        protected, hidden = GlobSet(self.spec.protected_paths), GlobSet(self.spec.hidden_paths)
        protection = plan_protection(self.incumbent, protected, hidden)
        place = self.root / f"stage-{len(list(self.root.iterdir()))}"
        place.mkdir()
        copied = protection.copy_side(Checkout(built), place / "side")
        copy_matching(self.incumbent, place / "driver", protected, omit=hidden)
        both = GlobSet((*self.spec.protected_paths, *self.spec.hidden_paths))
        copy_matching(self.incumbent, place / "validator", both)
        return TrialFiles(copied, protection.mounts(CHECKOUT), place / "driver", place / "validator")

    def trial(self, changes: Mapping[str, str], *, side: Side = "candidate") -> Trial:
        """Run one trial on a checkout with these changes."""
        built = self.candidate(changes, f"built-{len(list(self.root.iterdir()))}")
        self.book = BoundaryBook({"work": self.root})
        files = self.files_of(built)
        place = self.root / "trial"
        trial = run_trial(self.spec, planned(side), files, place, binding=Binding(), book=self.book)
        assert not (self.root / "trial").exists()
        return trial

    def side(self, built: Path) -> SideRef:
        return SideRef(commit="1" * 40, tree="2" * 40, built=str(built), built_sha256=tree_digest(built))

    def request(
        self, candidate: Path, devices: tuple[DeviceSet, ...], *, pairs: int = 6, name: str = "e.0"
    ) -> MeasurementRequest:
        return MeasurementRequest(
            format="roundkit-measurement-request/1",
            experiment_id=name,
            round_id="R1",
            purpose="ticket",
            subject="R1-L1-00000000",
            lane="L1",
            attempt=0,
            run_spec=self.spec,
            baseline=self.side(self.incumbent),
            candidate=self.side(candidate),
            incumbent_built=str(self.incumbent),
            device_sets=devices,
            schedule=plan_schedule(b"secret", "0" * 64, name, pairs),
            work_folder=str(self.root / "work" / name),
        )
