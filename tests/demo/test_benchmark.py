"""The demo's benchmark: inputs that the seed decides, a validator that catches wrong answers."""

import json

import pytest


@pytest.fixture
def saved(figures, checkout, tmp_path):
    """Run one trial a seed and return what the driver saved, by file name."""

    def run(seed: int) -> dict:
        trial = figures.run_trial(
            checkout_folder, tmp_path / f"trial-{seed}-{len(made)}", seed=seed, repetitions=2
        )
        made.append(trial)
        assert trial.driver_exit == 0, trial.driver_stderr
        return {path.stem: json.loads(path.read_text()) for path in trial.output_dir.glob("*.json")}

    made: list = []
    checkout_folder = checkout()
    return run


@pytest.fixture
def verdict_on(figures, checkout, tmp_path):
    """Validate changed outputs: ``verdict_on({"repetition-0": …})``."""

    def validate(outputs: dict):
        folder = tmp_path / "doctored"
        folder.mkdir()
        for name, value in outputs.items():
            (folder / f"{name}.json").write_text(json.dumps(value))
        return figures.validate(figures.DEMO / "program", folder)

    return validate


def test_seed_decides_inputs(saved):
    first, again, other = saved(1), saved(1), saved(2)
    assert first == again
    assert first["repetition-0"]["request"] != other["repetition-0"]["request"]
    assert first["repetition-0"]["request"] != first["repetition-1"]["request"]


def test_amount_of_work_does_not_depend_on_the_seed(saved):
    sizes = {
        (
            sum(map(len, output["request"]["sources"].values())),
            len(output["request"]["sources"]),
            len(output["request"]["queries"]),
        )
        for seed in (1, 2, 3)
        for name, output in saved(seed).items()
        if name != "afterwards"
    }
    assert len(sizes) == 1


def test_queries_find_something(saved):
    answers = [answer for output in saved(3).values() for answer in output["answer"]]
    assert sum(bool(answer["hits"]) for answer in answers) > len(answers) / 2


def test_validator_rejects_truncated_hits(saved, verdict_on):
    outputs = saved(4)
    next(answer["hits"] for answer in outputs["repetition-1"]["answer"] if answer["hits"]).pop()
    assert verdict_on(outputs).returncode == 1


def test_validator_rejects_answers_for_another_seed(saved, verdict_on):
    outputs, other = saved(4), saved(5)
    outputs["repetition-0"]["answer"] = other["repetition-0"]["answer"]
    assert verdict_on(outputs).returncode == 1


def test_validator_rejects_an_answer_that_went_wrong_after_the_clock(saved, verdict_on):
    outputs = saved(4)
    outputs["afterwards"]["answer"] = outputs["afterwards"]["answer"][:-1]
    verdict = verdict_on(outputs)
    assert verdict.returncode == 1
    assert "afterwards.json" in verdict.stderr


@pytest.mark.parametrize("answer", [None, [], {}, "right", [1, 2, 3], 0])
def test_validator_rejects_answers_of_another_shape(saved, verdict_on, answer):
    outputs = saved(4)
    outputs["repetition-0"]["answer"] = answer
    verdict = verdict_on(outputs)
    assert verdict.returncode == 1
    assert "Traceback" not in verdict.stderr


def test_validator_rejects_an_empty_folder(verdict_on):
    verdict = verdict_on({})
    assert verdict.returncode == 1
    assert "no saved answers" in verdict.stderr
