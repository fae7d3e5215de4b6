"""D05: the SwarmFlow script of a round: what it holds, and what its lint does not let through."""

from __future__ import annotations

import ast
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import roundkit.agents.swarmflow.script as script_module
from roundkit.agents.swarmflow.lint import lint_script
from roundkit.agents.swarmflow.reports import sort_reports
from roundkit.agents.swarmflow.script import WorkerLane, render_script, worker_prompt
from roundkit.core.errors import Refused
from roundkit.core.resources import shipped
from roundkit.models.lane import LaunchLane, LaunchManifest
from roundkit.models.round_plan import LaneBudget

DIGEST = "ab" * 32
GOOD = 'META = {"name": "x", "phases": ["a"]}\n\n\nasync def run(args):\n    return args\n'


def manifest(*lanes: str) -> LaunchManifest:
    rows = [
        LaunchLane(
            id=lane,
            clone=f"/rounds/r01/lanes/{lane}",
            wrapper=f"/rounds/r01/lanes/{lane}/.roundkit/round",
            entry=f"E-{lane}",
            plane="algorithm",
            hypothesis="h",
            globs=("a/**",),
            harness="swarmflow",
            model=None,
            budget=LaneBudget(),
            deadline_utc=datetime(2030, 1, 1, tzinfo=UTC),
            environment=None,
            probe=None,
        )
        for lane in lanes
    ]
    return LaunchManifest(
        format="roundkit-launch/1",
        round_id="r01",
        round_digest=DIGEST,
        incumbent="c" * 40,
        protected_paths=(),
        lanes=tuple(rows),
    )


def worker_lane(lane: str, **changes: Any) -> WorkerLane:
    clone = f"/rounds/r01/lanes/{lane}"
    prompt = worker_prompt(lane, clone, f'# Lane {lane}\n\nIt\'s "quoted", {{braced}}, 日本 and \\ odd.')
    given: dict[str, Any] = {
        "id": lane,
        "clone": clone,
        "prompt": prompt,
        "timeout_s": 90,
        "model": None,
        "tokens": None,
    }
    return WorkerLane(**{**given, **changes})


def literal(source: str, name: str) -> Any:
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def test_d05_a_script_holds_everything_that_varies_as_a_literal() -> None:
    lanes = [worker_lane("L1", tokens=2_000_000, model="m"), worker_lane("L2", tokens=500_000)]
    source = render_script(manifest("L1", "L2"), lanes)
    assert lint_script(source) == ()
    meta = literal(source, "META")
    assert (meta["name"], meta["workflow_token_limit"], meta["phases"]) == (
        "roundkit-r01",
        2_500_000,
        ["lanes"],
    )
    assert literal(source, "ROUND_DIGEST") == DIGEST
    first, second = literal(source, "LANES")
    assert first["options"] == {"timeout": 90, "model": "m"}
    assert second["options"] == {"timeout": 90}
    assert [row["prompt"] for row in (first, second)] == [lane.prompt for lane in lanes]


def test_d05_every_prompt_names_its_clone_by_absolute_path() -> None:
    for row in literal(render_script(manifest("L1"), [worker_lane("L1")]), "LANES"):
        assert f"cd {row['clone']} &&" in row["prompt"]
        assert row["clone"].startswith("/")


def test_d05_without_a_cap_on_one_lane_the_script_has_none() -> None:
    source = render_script(manifest("L1", "L2"), [worker_lane("L1", tokens=5), worker_lane("L2")])
    assert "workflow_token_limit" not in literal(source, "META")


def test_d05_the_same_round_renders_the_same_script() -> None:
    lanes = [worker_lane("L1")]
    assert render_script(manifest("L1"), lanes) == render_script(manifest("L1"), lanes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import time", "imports time"),
        ("from os import path", "imports os"),
        ("import socket, json", "imports socket"),
        ("x = time.monotonic()", "calls time.monotonic()"),
        ("x = time.time_ns()", "calls time.time_ns()"),
        ("x = random.random()", "calls random.random()"),
        ("x = uuid.uuid4()", "calls uuid.uuid4()"),
        ("x = datetime.datetime.now()", "calls datetime.datetime.now()"),
        ("x = date.today()", "calls date.today()"),
        ("x = open('f')", "calls open()"),
        ("x = __import__('os')", "calls __import__()"),
        ("x = [lambda: agent(y) for y in ()]", "binds its variable too late"),
        ("x = [(lambda: workflow(y)) for y in ()]", "binds its variable too late"),
        ("x = {'isolation': 'worktree'}", "sets `isolation`"),
        ("x = agent('p', isolation='worktree')", "sets `isolation`"),
    ],
)
def test_d05_what_a_script_must_not_do(line: str, said: str) -> None:
    problems = lint_script(f"{GOOD}\n\n{line}\n")
    assert [problem.line for problem in problems] == [8]
    assert said in problems[0].message


@pytest.mark.parametrize(
    "meta",
    [
        '{"limit": 2 * 10**6}',
        '{"name": f"x"}',
        '{"name": "a" + "b"}',
        "dict(name='x')",
        '{"name": NAME}',
        '{"limit": -1}',
        '{**{"name": "x"}}',
        '["name"]',
    ],
)
def test_d05_meta_is_one_literal_dict(meta: str) -> None:
    source = GOOD.replace('{"name": "x", "phases": ["a"]}', meta)
    assert any("META" in problem.message for problem in lint_script(source))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("async def run(args):\n    pass\n", "has 0 top-level META"),
        (f"{GOOD}META = {{}}\n", "has 2 top-level META"),
        ("META = {}\n\n\ndef run(args):\n    pass\n", "async def run"),
        ("META = {\n", "is no Python"),
    ],
)
def test_d05_a_script_has_one_meta_and_one_entry(source: str, said: str) -> None:
    assert said in " ".join(map(str, lint_script(source)))


def test_d05_a_lambda_that_binds_its_variable_is_no_problem() -> None:
    assert lint_script(f"{GOOD}\n\nx = [lambda y=y: agent(y) for y in ()]\n") == ()


def test_d05_a_broken_template_is_caught_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (shipped("templates") / "swarmflow.py.j2").read_text()
    broken = template.replace("import json\n", "import json\nimport time\n")
    broken = broken.replace('phase("lanes")', 'phase("lanes")\n    log(str(time.time()))')
    shutil.copytree(shipped("templates"), tmp_path / "templates")
    (tmp_path / "templates" / "swarmflow.py.j2").write_text(broken)
    monkeypatch.setattr(script_module, "shipped", lambda kind: tmp_path / kind)
    with pytest.raises(Refused) as refused:
        render_script(manifest("L1"), [worker_lane("L1")])
    assert {row.code for row in refused.value.refusals} == {"swarmflow-lint"}
    assert [row.message.partition(": ")[2].split()[0] for row in refused.value.refusals] == [
        "imports",
        "calls",
    ]


def test_d05_reports_are_held_against_the_plan() -> None:
    result = {
        "reports": [
            {"lane": "L2", "tickets": ["r01-L2-0"], "notes": "n"},
            {"lane": "[mock:lane] generated text 1", "tickets": [], "notes": ""},
            {"lane": "L2", "tickets": [], "notes": ""},
            {"tickets": []},
            "L3",
        ]
    }
    reports = sort_reports(result, ["L1", "L2"])
    assert (list(reports.by_lane), reports.missing) == (["L2"], ("L1",))
    assert len(reports.strange) == 4


@pytest.mark.parametrize("result", [None, [], {}, {"reports": None}, {"reports": {"L1": 1}}, "x"])
def test_d05_a_result_that_is_none_reports_every_lane_missing(result: Any) -> None:
    reports = sort_reports(result, ["L1"])
    assert (reports.by_lane, reports.missing, reports.strange) == ({}, ("L1",), ())
