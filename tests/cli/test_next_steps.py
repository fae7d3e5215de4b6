"""After each command of a round's way, what comes next can be pasted."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import run_roundkit
from support.synthetic import CampaignRepo, knob, scripted_lane, write_files

from roundkit.cli import next_steps
from roundkit.cli.pool_options import Pool, pool_words
from roundkit.rounds.control import read_status
from roundkit.rounds.locks import hold_lock
from roundkit.store import open_store


def roundkit(*words: str | Path) -> subprocess.CompletedProcess[str]:
    done = run_roundkit(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_each_command_says_what_to_paste_next_and_a_person_how_to_hand_over(
    three_lanes: CampaignRepo, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(open_folder / "leases"))
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(harness="none"))
    out = open_folder / "a round"
    campaign, draft = three_lanes.campaign_file, three_lanes.round_file
    said = roundkit("prepare", "--campaign", campaign, "--round", draft, "--out", out).stdout
    program, *words = shlex.split(said.splitlines()[-1])
    assert (program, words[:2]) == ("roundkit", ["launch", str(out)])
    said = roundkit(*words).stdout
    assert re.search(r"^L1 is a person's: ", said, re.MULTILINE)
    assert "change knobs/L1.json there" in said
    assert "  .roundkit/round submit\n" in said
    program, *words = shlex.split(said.splitlines()[-1])
    assert (program, words) == ("roundkit", ["serve", str(out), "--until-idle"])
    serve = shlex.join(["roundkit", *words])
    assert roundkit("status", out).stdout.endswith(
        f"next: once something is handed over, measure it\n  {serve}\n"
    )
    clone = out / "lanes/L1"
    write_files(clone, {"knobs/L1.json": '{"cost": 35}'})
    handed = subprocess.run(
        [".roundkit/round", "submit"], cwd=clone, capture_output=True, text=True, check=False
    )
    assert handed.returncode == 0, handed.stderr
    said = roundkit("status", out).stdout
    assert "handed over, and not taken in yet: L1 1\n" in said
    assert said.endswith(f"next: measure what is handed over\n  {serve}\n")
    assert json.loads(roundkit("status", out, "--json").stdout)["handed_over"] == {"L1": 1}
    assert "next: look" in roundkit(*words).stdout
    assert json.loads(roundkit("status", out, "--json").stdout)["handed_over"] == {}
    close = shlex.join(["roundkit", "close", str(out)])
    said = roundkit("status", out).stdout
    assert said.endswith(f"next: submit more and serve again, or end the round\n  {serve}\n  {close}\n")
    roundkit("pause", out, "--reason", "the room is warm")
    said, resume = roundkit("status", out).stdout, shlex.join(["roundkit", "resume", str(out)])
    assert said.endswith(f"next: once what paused it is mended\n  {resume}\n  {serve}\n")


def test_the_next_step_of_a_round_that_nobody_launched_is_to_launch_it(
    three_lanes: CampaignRepo, open_folder: Path, lease_root: Path
) -> None:
    out = open_folder / "round"
    digest = three_lanes.freeze(out).digest()
    launch = f"next: make the lanes\n  roundkit launch {out} --digest {digest}\n"
    assert roundkit("status", out).stdout.endswith(launch)
    assert roundkit("serve", out, "--until-idle").stdout.endswith(launch)


def test_close_is_offered_where_nothing_waits_or_the_deadline_has_passed(
    three_lanes: CampaignRepo,
    open_folder: Path,
    lease_root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    root = folder.root
    pool = pool_words(Pool.dask, "tcp://127.0.0.1:1", Path("certs"), None)
    assert pool == ["--pool", "dask", "--scheduler", "tcp://127.0.0.1:1", "--tls", Path("certs")]
    assert pool_words(Pool.local, None, None, None) == []
    words = "--pool dask --scheduler tcp://127.0.0.1:1 --tls certs"
    serve, close = f"  roundkit serve {root} --until-idle {words}\n", f"  roundkit close {root} {words}\n"

    def after_serve() -> str:
        next_steps.after_serve(root, read_status(folder), pool)
        return capsys.readouterr().out

    assert after_serve() == f"next: once something is handed over, measure it\n{serve}"
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.3)})
    # A serve that was drained leaves work behind: the next one goes on with it, and close would refuse.
    assert after_serve() == f"next: measure what is handed over\n{serve}"
    roundkit("serve", root, "--until-idle")
    assert after_serve().endswith(close)
    status = read_status(folder)
    over = status.plan.model_copy(update={"deadline_utc": status.plan.frozen_utc})
    next_steps.after_look(root, replace(status, plan=over), pool)
    assert capsys.readouterr().out == f"next: the round's deadline has passed: end it\n{close}"


def test_a_close_that_was_stopped_and_a_round_that_is_closed_say_what_comes_next(
    three_lanes: CampaignRepo, open_folder: Path, lease_root: Path
) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    with open_store(folder.database) as store, store.transaction():
        store.steps.put("begun", b"")
    said = roundkit("status", folder.root).stdout
    assert said.endswith(f"next: let close go on\n  roundkit close {folder.root}\n")
    assert roundkit("launch", folder.root).stdout.endswith(
        f"round r01 is being closed: nothing more is measured for its lanes\n"
        f"next: let close go on\n  roundkit close {folder.root}\n"
    )
    roundkit("close", folder.root)
    said = roundkit("launch", folder.root).stdout
    assert "the incumbent stays: nothing more is measured for its lanes\nevidence " in said
    assert "roundkit serve" not in said
    assert roundkit("status", folder.root).stdout.endswith(f"  roundkit prune {folder.root}\n")


def test_status_names_what_is_measured_and_not_what_a_killed_serve_had_begun(
    three_lanes: CampaignRepo, open_folder: Path, lease_root: Path
) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    with open_store(folder.database) as store, store.transaction():
        store.experiments.begin("aa-1.1", "aa", "aa-1", 1)
    with hold_lock(folder.serve_lock, code="serve-running", what="serve"):
        assert "\nmeasuring: aa-1\n" in roundkit("status", folder.root).stdout
        assert json.loads(roundkit("status", folder.root, "--json").stdout)["measuring"] == ["aa-1"]
    assert "measuring:" not in roundkit("status", folder.root).stdout
    roundkit("serve", folder.root, "--until-idle")
    assert read_status(folder).measuring == ()


def test_a_draft_stays_a_file_and_the_next_step_stands_beside_it(three_lanes: CampaignRepo) -> None:
    done = roundkit("prepare", "--campaign", three_lanes.campaign_file, "--propose", "2")
    assert "next:" not in done.stdout
    assert f"--round {three_lanes.campaign_file.with_name('round.yaml')} --out ../r01" in done.stderr


def test_a_command_that_a_program_started_tells_nobody_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    next_steps.say_next("look", ["roundkit", "status", "r"])
    assert capsys.readouterr().out == "next: look\n  roundkit status r\n"
    monkeypatch.setenv("ROUNDKIT_UNATTENDED", "1")
    next_steps.say_next("look", ["roundkit", "status", "r"])
    assert capsys.readouterr().out == ""
