"""Print the figures that the demo's README quotes: what each lane brings alone, and on top.

Run from anywhere: ``python templates/demo/figures.py [--rounds 15]``. Trials run outside any boundary and
take turns. For each seed the fastest repetition of all rounds counts, since a busy machine can only make
one slower; a gain is the mean over the seeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DEMO = Path(__file__).resolve().parent
PACKAGE_ROOT = DEMO.parents[1]
REPETITIONS = 3
SEEDS = (1, 2, 3)

L1, L2, L3 = "L1-tokenize-regex", "L2-rank-hoist", "L3-stats-memo"
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    (),
    (L1,),
    (L2,),
    (L3,),
    ("L4-engine-names",),
    ("L5-index-lines",),
    ("L8-query-longest-term",),
    (L1, L2),
    (L1, L3),
    (L1, L2, L3),
    (L1, L3, L2),
)


@dataclass(frozen=True)
class Trial:
    """What one trial left behind.

    Attributes:
        driver_exit: Exit code of the driver.
        driver_stderr: What the driver wrote to stderr.
        latencies_ms: The timed repetitions in milliseconds; empty where there is no result.
        output_dir: Where the driver saved answers for the validator.
    """

    driver_exit: int
    driver_stderr: str
    latencies_ms: tuple[float, ...]
    output_dir: Path


def make_checkout(destination: Path, lanes: Sequence[str] = ()) -> Path:
    """Copy the program to a new folder and apply the patches of some lanes to it, in order."""
    shutil.copytree(DEMO / "program", destination, ignore=shutil.ignore_patterns("__pycache__"))
    for lane in lanes:
        patch = DEMO / "lanes" / f"{lane}.patch"
        subprocess.run(["git", "apply", "--whitespace=error-all", str(patch)], cwd=destination, check=True)
    return destination


def python(script: Path, **environment: str) -> tuple[list[str], dict[str, str]]:
    """Return command line and environment that start a script the way the demo's plan does."""
    inherited = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return (
        [sys.executable, "-s", "-P", "-B", str(script)],
        {**inherited, "PYTHONPATH": str(PACKAGE_ROOT), "PYTHONHASHSEED": "0", **environment},
    )


def run_trial(checkout: Path, trial_dir: Path, *, seed: int, repetitions: int = REPETITIONS) -> Trial:
    """Run driver and worker of one checkout with their pipes crossed, and wait for both."""
    output_dir, result = trial_dir / "outputs", trial_dir / "result.json"
    output_dir.mkdir(parents=True)
    driver_argv, driver_environment = python(
        checkout / "bench" / "driver.py",
        ROUNDKIT_RESULT_PATH=str(result),
        ROUNDKIT_OUTPUT_DIR=str(output_dir),
        ROUNDKIT_SEED=str(seed),
        ROUNDKIT_REPETITIONS=str(repetitions),
    )
    worker_argv, worker_environment = python(checkout / "bench" / "worker.py")
    from_worker, to_driver = os.pipe()
    from_driver, to_worker = os.pipe()
    worker = subprocess.Popen(
        worker_argv, cwd=checkout, env=worker_environment, stdin=from_driver, stdout=to_driver
    )
    driver = subprocess.Popen(
        driver_argv,
        cwd=trial_dir,
        env=driver_environment,
        stdin=from_worker,
        stdout=to_worker,
        stderr=subprocess.PIPE,
        text=True,
    )
    for descriptor in (from_worker, to_driver, from_driver, to_worker):
        os.close(descriptor)
    _, stderr = driver.communicate()
    worker.wait()
    metrics = json.loads(result.read_text())["metrics"] if result.exists() else {"latency_ms": []}
    return Trial(driver.returncode, stderr, tuple(metrics["latency_ms"]), output_dir)


def validate(checkout: Path, output_dir: Path) -> subprocess.CompletedProcess[str]:
    """Run a checkout's validator on the outputs of a trial."""
    argv, environment = python(checkout / "bench" / "validate.py", ROUNDKIT_OUTPUT_DIR=str(output_dir))
    return subprocess.run(argv, env=environment, capture_output=True, text=True)


def measure(rounds: int, folder: Path) -> dict[tuple[str, ...], tuple[float, ...]]:
    """Measure every combination: its fastest repetition (ms) for each of the seeds."""
    checkouts = {
        lanes: make_checkout(folder / "-".join(("checkout", *lanes)), lanes) for lanes in COMBINATIONS
    }
    latencies = {lanes: dict.fromkeys(SEEDS, math.inf) for lanes in COMBINATIONS}
    for turn, (lanes, seed) in enumerate(rounds * list(itertools.product(COMBINATIONS, SEEDS))):
        trial = run_trial(checkouts[lanes], folder / f"trial-{turn}", seed=seed)
        latencies[lanes][seed] = min(latencies[lanes][seed], *trial.latencies_ms)
    return {lanes: tuple(fastest.values()) for lanes, fastest in latencies.items()}


def gain(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """Return the gain as a fraction: one less the mean ratio over the seeds."""
    return 1 - statistics.mean(new / old for old, new in zip(baseline, candidate, strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="trials of each combination and seed")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="searchkit-") as folder:
        latencies = measure(rounds, Path(folder))
    print("| lanes applied | ms a repetition | gain over the program | gain of the last lane on the others |")
    print("| --- | --- | --- | --- |")
    for lanes, samples in latencies.items():
        over_program = f"{gain(latencies[()], samples):+.1%}" if lanes else ""
        over_previous = f"{gain(latencies[lanes[:-1]], samples):+.1%}" if len(lanes) > 1 else ""
        name = " + ".join(lanes) or "none"
        print(f"| {name} | {statistics.mean(samples):.1f} | {over_program} | {over_previous} |")


if __name__ == "__main__":
    main()
