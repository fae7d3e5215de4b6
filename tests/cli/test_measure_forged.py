"""M12: ``measure --from`` does not believe a file whose digests and verdict were refitted after an edit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from support.checkouts import BENCHMARK, METRIC, PYTHON, SIX, SLOW, Bench
from support.synthetic import reachable_folder

from roundkit.cli.compare_tables import show_comparison
from roundkit.models.comparison import Comparison
from roundkit.rules.comparison import disagreements, recomputed
from roundkit.rules.verdict import decide

Forgery = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with reachable_folder() as folder:
        made = Bench(folder)
        made.add("a")
        made.add("b", prog_py=SLOW + "MORE = 1\n")
        made.add("broken", prog_py="raise SystemExit('no such thing')")
        yield made


def measured(bench: Bench, name: str, *words: str, candidate: str = "b") -> dict[str, Any]:
    bench.run("measure", "a", candidate, *BENCHMARK, *words, *SIX, "--json", name, expect=1)
    document: dict[str, Any] = json.loads((bench.root / name).read_bytes())
    return document


@pytest.fixture(scope="module")
def reported(bench: Bench) -> dict[str, Any]:
    return measured(bench, "reported.json", *METRIC)


@pytest.fixture(scope="module")
def clocked(bench: Bench) -> dict[str, Any]:
    return measured(bench, "clocked.json", "--min-gain", "0.9")


@pytest.fixture(scope="module")
def unbuilt(bench: Bench) -> dict[str, Any]:
    build = ("--build", f"{PYTHON} -c 'import prog'")
    return measured(bench, "unbuilt.json", *METRIC, *build, candidate="broken")


def read(file: dict[str, Any]) -> Comparison:
    return Comparison.from_bytes(json.dumps(file).encode(), place="c.json")


def refitted(file: dict[str, Any], forge: Forgery) -> Comparison:
    """Return the file with an edit, and with everything that a forger recomputes after it."""
    file = deepcopy(file)
    forge(file)
    digest = read(file).run_spec.digest()
    for record in (*file["earlier"], file["experiment"]):
        if record is not None:
            record["run_spec_sha256"] = digest
    if file["experiment"] is not None:
        file["verdict"] = recomputed(read(file)).to_json_value()
    return read(file)


def found(file: dict[str, Any], forge: Forgery) -> str:
    return "; ".join(disagreements(refitted(file, forge)))


def faster_samples(file: dict[str, Any]) -> None:
    """A candidate that is fast in the samples of every trial."""
    metric = file["run_spec"]["metric"]["name"]
    for trial in file["experiment"]["trials"]:
        if trial["planned"]["side"] == "candidate":
            value = trial["value"] * 0.01
            trial["value"], trial["metrics"][metric] = value, [value]


def faster_readings(file: dict[str, Any]) -> None:
    """The same, in what the coordinator read as well."""
    faster_samples(file)
    for trial in file["experiment"]["trials"]:
        trial["resources"]["wall_s"] = trial["value"] / 1000


def repeated(file: dict[str, Any]) -> None:
    """An experiment that had decided, measured once more until it pleased."""
    file["earlier"] = [deepcopy(file["experiment"])]


def other_direction(file: dict[str, Any]) -> None:
    for part in ("plan", "run_spec"):
        file[part]["metric"]["direction"] = "higher"
    file["run_spec"]["round_digest"] = read(file).plan.digest()


def early(file: dict[str, Any]) -> None:
    file["experiment"].update(ended_utc="2020-01-01T00:00:00.000000Z")


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda file: file["run_spec"]["metric"].update(direction="higher"), "run_spec: metric is"),
        (lambda file: file["run_spec"]["gates"].update(sigma_min=0.001), "run_spec: gates is"),
        (lambda file: file["run_spec"]["benchmark"].update(argv=["/bin/true"]), "run_spec: benchmark is"),
        (lambda file: file["run_spec"].update(validator={"argv": ["x"], "timeout_s": 1.0}), "validator is"),
        (lambda file: file["run_spec"].update(environment={}), "run_spec: environment is"),
        (lambda file: file["run_spec"].update(protected_paths=[]), "run_spec: protected_paths is"),
        (lambda file: file["run_spec"].update(pin_cpus=False), "run_spec: pin_cpus is"),
        (lambda file: file["run_spec"].update(counting_tool="perf"), "run_spec: counting_tool is"),
        (lambda file: file["plan"]["metric"].update(direction="higher"), "run_spec: round_digest is"),
        (other_direction, "is not the one that the secret gives"),
        (repeated, "had decided, and yet was measured again"),
        (lambda file: file["experiment"].update(attempt=2), "attempt is 2, recomputed 1"),
        (lambda file: file["experiment"]["candidate"].update(commit="0" * 64), "candidate is 0"),
        (lambda file: file["experiment"]["baseline"].update(tree="0" * 64), "baseline's tree is 0"),
        (lambda file: file["experiment"]["candidate"].update(files_sha256_after="0" * 64), "files changed"),
        (lambda file: file["experiment"].update(purpose="ticket"), "purpose is ticket"),
        (lambda file: file["experiment"].update(round_id="other"), "round_id is other"),
        (lambda file: file["experiment"]["lease"].update(device_set="mine"), "which the plan has otherwise"),
        (early, "overlap or lie outside"),
        (
            lambda file: file["experiment"].update(session_noise={"checks": 1, "variance": 1.0}),
            "session_noise is",
        ),
        (
            lambda file: file["experiment"].update(outcome="candidate-broke", reason="candidate-crashed"),
            "what broke is candidate-crashed, recomputed nothing",
        ),
    ],
)
def test_m12_what_ran_is_bound_to_the_plan(reported: dict[str, Any], forge: Forgery, said: str) -> None:
    assert disagreements(read(reported)) == ()
    assert said in found(reported, forge)


@pytest.mark.parametrize("forge", [faster_samples, faster_readings])
def test_m12_the_coordinators_own_clock_is_compared_with_what_it_read(
    clocked: dict[str, Any], forge: Forgery
) -> None:
    assert disagreements(read(clocked)) == ()
    forged = refitted(clocked, forge)
    assert forged.verdict.verdict == "pass"
    assert disagreements(forged)


def test_m12_without_an_experiment_only_its_commands_speak(
    unbuilt: dict[str, Any], reported: dict[str, Any]
) -> None:
    assert disagreements(read(unbuilt)) == ()
    passing = {**reported["verdict"], "verdict": "pass", "sentence": "pass: a gain of 99 %"}
    for file in (unbuilt, reported):
        said = found(file, lambda file: file.update(experiment=None, verdict=passing))
        assert "verdict.verdict is pass" in said
    said = found(reported, lambda file: file.update(experiment=None))
    assert "all succeeded, and yet nothing was measured" in said
    said = found(unbuilt, lambda file: file["builds"].reverse())
    assert "builds of the baseline: failed, and yet it was measured" in said


def test_m12_a_forged_file_exits_with_1(bench: Bench, clocked: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "forged.json").write_bytes(refitted(clocked, faster_readings).to_bytes())
    ran = bench.run("measure", "--from", str(tmp_path / "forged.json"), expect=1)
    assert "the coordinator's wall_s is" in ran.err


def test_m12_the_same_files_are_said_to_be_the_same(bench: Bench) -> None:
    bench.add("c")
    ran = bench.run("measure", "a", "c", *BENCHMARK, *METRIC, *SIX, expect=1)
    assert ran.out.splitlines()[-1].endswith("(A and B have the same files)")
    assert "nothing between them to measure" in ran.out


@pytest.mark.parametrize("seen", [0.01, 3.0], ids=["gain", "loss"])
def test_m12_no_file_is_faster_or_slower_than_itself(
    bench: Bench, seen: float, capsys: pytest.CaptureFixture[str]
) -> None:
    def scattered(file: dict[str, Any]) -> None:
        for trial in file["experiment"]["trials"]:
            side = seen if trial["planned"]["side"] == "candidate" else 1.0
            trial["value"] = side * (1.0 + trial["planned"]["index"] % 3 / 100)

    lucky = refitted(measured(bench, "itself.json", *METRIC, candidate="a"), scattered)
    assert decide(lucky.experiment, lucky.run_spec).verdict == ("pass" if seen < 1 else "fail")
    assert (lucky.verdict.verdict, lucky.verdict.reason) == ("not-measured", "same-files")
    show_comparison(lucky)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("not-measured: A and B have the same files, so that a difference of ")
    assert last.endswith("over 6 pairs is this machine's noise")
