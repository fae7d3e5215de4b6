"""The command line as a person meets it: real processes, exit codes, words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from support.command_line import run_roundkit
from support.synthetic import CampaignRepo, commit_all, knob, scripted_lane, write_files

from roundkit.cli.app import app
from roundkit.rounds.layout import RoundFolder

COMMANDS = sorted(command.name or "" for command in typer.main.get_command(app).commands.values())  # type: ignore[attr-defined]
EXPECTED = {
    "prepare", "launch", "serve", "status", "pause", "resume", "drain", "stop-lane", "leases", "close",
    "report", "audit", "notebook", "replay", "demo", "doctor", "export", "import", "schema", "trial",
    "prune", "measure", "noise", "swarmflow", "pilot", "waves", "init", "cluster", "worker",
    "devices", "explain",
}  # fmt: skip


def roundkit(*words: str | Path, expect: int = 0, cwd: Path | None = None) -> str:
    """Run the command line and return everything that it printed."""
    done = run_roundkit(*words, cwd=cwd)
    printed = done.stdout + done.stderr
    assert done.returncode == expect, printed
    assert "Traceback" not in printed
    return printed


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(tmp_path / "leases"))


def test_every_verb_exists() -> None:
    assert set(COMMANDS) == EXPECTED


def test_nothing_sends_people_to_a_command_that_does_not_exist() -> None:
    root = Path(__file__).resolve().parents[2]
    places = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "templates").rglob("*.*")]
    places += [*(root / "roundkit").rglob("*.py"), *(root / "notebooks").glob("*.ipynb")]
    named = {
        (word, place.relative_to(root).as_posix())
        for place in places
        if place.parent.name != "__pycache__"
        for word in re.findall(r"`roundkit ([a-z][a-z-]*)", place.read_text())
    }
    assert {row for row in named if row[0] not in EXPECTED} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_says_what_it_is_for(command: str) -> None:
    printed = roundkit(command, "--help")
    assert "Usage:" in printed
    summary = typer.main.get_command(app).commands[command].help  # type: ignore[attr-defined]
    assert summary
    assert summary.split()[0] in printed


def test_usage_errors_exit_with_2(tmp_path: Path) -> None:
    assert "No such command" in roundkit("measure-everything", expect=2)
    assert "Missing" in roundkit("close", expect=2)
    assert "exclude each other" in roundkit("serve", tmp_path, "--until-idle", "--until-deadline", expect=2)


@pytest.mark.parametrize(
    "command", ["launch", "serve", "status", "close", "pause", "resume", "drain", "trial", "prune"]
)
def test_a_folder_that_is_no_round_is_refused_with_a_remedy(command: str, tmp_path: Path) -> None:
    printed = roundkit(command, tmp_path, expect=3)
    assert "[not-a-round]" in printed or "[no-serve]" in printed
    assert list(tmp_path.iterdir()) == []


def test_a_plan_edited_after_freezing_is_refused(three_lanes: CampaignRepo, open_folder: Path) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    plan = json.loads(folder.plan_file.read_bytes())
    plan["gates"]["min_gain"] = 0.0
    folder.plan_file.write_text(json.dumps(plan))
    for command in ("serve", "close", "launch", "status"):
        assert "[plan-changed]" in roundkit(command, folder.root, expect=3)


@pytest.mark.usefixtures("leases")
@pytest.mark.slow
def test_a_round_from_freeze_to_report_in_commands(three_lanes: CampaignRepo, open_folder: Path) -> None:
    out = open_folder / "round"
    frozen = roundkit(
        "prepare", "--campaign", three_lanes.campaign_file, "--round", three_lanes.round_file, "--out", out
    )
    digest = frozen.split("digest ")[-1].split()[0]
    assert "[digest-mismatch]" in roundkit("launch", out, "--digest", "0" * 64, expect=3)
    assert not (out / "lanes").exists()
    roundkit("launch", out, "--digest", digest)
    folder = RoundFolder(out)
    ticket = scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})["ticket"]
    assert "[tickets-waiting]" in roundkit("close", out, expect=3)
    assert "tickets 1 have a verdict, 0 are rejected" in roundkit("serve", out, "--until-idle")
    status = json.loads(roundkit("status", out, "--json"))
    assert [(row["ticket"], row["verdict"]) for row in status["tickets"]] == [(ticket, "pass")]
    (row,) = json.loads(roundkit("status", out, ticket.removeprefix("r01-"), "--json"))["tickets"]
    assert row["ticket"] == ticket
    assert row["low"] <= row["gain"] <= row["high"]
    assert f"+{100 * row['low']:.1f} % to +{100 * row['high']:.1f} %" in roundkit("status", out)
    assert "[unknown-ticket]" in roundkit("status", out, "nothing", expect=3)
    closed = roundkit("close", out)
    evidence = Path(closed.split("evidence exported to ")[1].split(",")[0])
    index = closed.split("--expect ")[1].split()[0]
    assert "roundkit prune" in closed
    roundkit("audit", evidence, "--repository", three_lanes.root, "--expect", index)
    roundkit("audit", evidence, "--expect", "0" * 64, expect=1)
    checks = json.loads(roundkit("audit", evidence, "--json"))
    assert all(check["passed"] for report in checks for check in report["checks"])
    page = open_folder / "report.html"
    assert str(page) in roundkit("report", evidence, "--out", page)
    assert ticket in page.read_text()


@pytest.mark.usefixtures("leases")
@pytest.mark.slow
def test_replay_makes_lanes_from_commits_and_goes_to_the_report(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    repository = three_lanes.repository
    three_lanes.campaign_file.unlink()
    base = repository.git("rev-parse", "HEAD").text
    bench = (
        "import json, os\n"
        "cost = json.load(open('slow.json'))['a'] + json.load(open('slow2.json'))['b']\n"
        "result = {'metrics': {'cost_ms': 1000 * cost}}\n"
        "json.dump(result, open(os.environ['ROUNDKIT_RESULT_PATH'], 'w'))\n"
    )
    files = {"slow.json": '{"a": 0.15}', "slow2.json": '{"b": 0.05}', "cost.py": bench}
    write_files(three_lanes.root, files)
    base = commit_all(repository, list(files), "a slow start")
    write_files(three_lanes.root, {"slow.json": '{"a": 0.01}'})
    fast = commit_all(repository, ["slow.json"], "wait less")
    write_files(three_lanes.root, {"slow2.json": '{"b": 0.05 }'})
    same = commit_all(repository, ["slow2.json"], "a space")
    out = open_folder / "replayed"
    printed = roundkit(
        "replay", f"{base}..{same}", "--repository", three_lanes.root, "--out", out,
        "--benchmark", "/usr/bin/python3 -S cost.py", "--metric", "cost_ms", "--pairs", "6",
    )  # fmt: skip
    assert fast[:10] in printed
    assert "wait less" in printed
    assert "95 % interval" in printed
    assert "every check passed" in printed
    assert (out / "report.html").is_file()
    branch = repository.git("for-each-ref", "--format=%(refname:short)", "refs/heads/roundkit").text
    assert repository.read_blob(branch, "slow.json") == b'{"a": 0.01}'
    assert repository.read_blob(branch, "slow2.json") == b'{"b": 0.05}'
