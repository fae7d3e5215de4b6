"""K06: workers as Slurm jobs: the script, and a round whose ``sbatch`` starts them here."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from support.cluster import Cluster, fixture_sets
from support.killing import assert_one_verdict_each, scene
from support.synthetic import reachable_folder

from roundkit.core.errors import Refused
from roundkit.measure.cluster.certificates import make_certificates
from roundkit.measure.cluster.slurm import job_script, read_workers

_SBATCH = """#!/bin/sh
# The script is gone once sbatch returns, so a real one copies it too.
copy="$FAKE_SLURM/job-$$.sh"
cp "$1" "$copy"
TMPDIR="$FAKE_SLURM" setsid sh "$copy" > "$copy.log" 2>&1 &
echo "$!" >> "$FAKE_SLURM/started"
echo "Submitted batch job $!"
"""
_SCANCEL = """#!/bin/sh
echo "$1" >> "$FAKE_SLURM/cancelled"
kill -TERM -- "-$1"
"""
OPTIONS = {"cores": 2, "memory": "2GB", "queue": "gpu", "walltime": "00:30:00"}


def slurm_file(folder: Path, **changed: object) -> Path:
    content = {
        "format": "roundkit-slurm/1",
        "jobs": 1,
        "device_sets": str(folder / "sets.yaml"),
        "home": "$TMPDIR/workers",
        "options": {**OPTIONS, "job_extra_directives": ["--gres=gpu:1"]},
    }
    (folder / "slurm.yaml").write_text(json.dumps({**content, **changed}))
    return folder / "slurm.yaml"


def test_k06_the_job_script_asks_for_what_was_said_and_starts_one_worker(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certs", days=1)
    script = job_script(read_workers(slurm_file(tmp_path)), "tls://10.0.0.1:8786", tmp_path / "certs")
    lines = script.splitlines()
    assert {
        "#SBATCH -J roundkit",
        "#SBATCH -p gpu",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --mem=2G",
        "#SBATCH -t 00:30:00",
        "#SBATCH --gres=gpu:1",
    } <= set(lines)
    command = lines[-1]
    assert " -m roundkit worker --scheduler tls://10.0.0.1:8786 --name roundkit-0 --until-lost " in command
    assert f"--tls {tmp_path}/certs" in command
    assert command.endswith('--home "$TMPDIR/workers/roundkit-0"')
    assert "dask_worker" not in script


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"options": {"cores": 2}}, "slurm-option"),
        ({"options": {**OPTIONS, "abacus": 1}}, "slurm-option"),
        ({"options": {**OPTIONS, "worker_command": "x"}}, "slurm-option"),
        ({"home": "$(rm -r /)"}, "malformed"),
        ({"jobs": 0}, "malformed"),
    ],
)
def test_k06_what_cannot_be_submitted_is_refused(
    tmp_path: Path, changed: dict[str, object], code: str
) -> None:
    with pytest.raises(Refused, match=code):
        job_script(read_workers(slurm_file(tmp_path, **changed)), "tcp://127.0.0.1:0", None)


def test_k06_a_scheduler_on_the_network_needs_tls(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="tls-needed"):
        job_script(read_workers(slurm_file(tmp_path)), "tcp://10.0.0.1:0", None)


@pytest.mark.slow
def test_k06_a_round_with_a_fake_sbatch_runs_to_its_end(open_folder: Path) -> None:
    submitted = scene(open_folder / "s", {"L1": 0.5}, device_sets=fixture_sets(["a"]))
    with reachable_folder() as home:
        here = Cluster(home)
        here.declare(["a"])
        programs = home / "bin"
        programs.mkdir()
        for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        sets = {"format": "roundkit-device-sets/1", "device_sets": fixture_sets(["a"])}
        (home / "sets.yaml").write_text(json.dumps(sets))
        slurm = slurm_file(home)
        env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "FAKE_SLURM": str(home)}
        words = ["--pool", "slurm", "--scheduler", "tcp://127.0.0.1:0", "--slurm", str(slurm)]
        try:
            for command in (
                ["serve", submitted.folder.root, "--until-idle"],
                ["close", submitted.folder.root],
            ):
                process = here.start(*command, *words, env=env)
                said, _ = process.communicate(timeout=240)
                logs = "".join(path.read_text() for path in home.glob("*.log"))
                assert process.returncode == 0, said + logs
            assert "new incumbent" in said
            assert_one_verdict_each(submitted.folder, here.leases, submitted.tickets)
            started = (home / "started").read_text().split()
            assert set((home / "cancelled").read_text().split()) == set(started)
            assert len(started) == 2
        finally:
            for group in (home / "started").read_text().split() if (home / "started").exists() else ():
                try:
                    os.killpg(int(group), signal.SIGKILL)
                except ProcessLookupError:
                    continue
