"""K06: workers as Slurm jobs: the script, and a round whose ``sbatch`` starts them here."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import dask
import psutil
import pytest
from cluster.conftest import PLAN, STORE, sets_of
from support.cluster import Cluster, fake_slurm, fixture_sets
from support.killing import assert_one_verdict_each, plain_repo, scene, wait_for
from support.synthetic import reachable_folder

from roundkit.core.errors import Refused
from roundkit.measure.cluster import slurm
from roundkit.measure.cluster.certificates import make_certificates
from roundkit.measure.cluster.pool import DaskPool
from roundkit.measure.cluster.slurm import job_script, read_workers, slurm_workers
from roundkit.rounds.close import close
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.pools import PoolChoice, PoolKind, chosen_pool
from roundkit.rounds.serve import serve

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
        ({"options": {**OPTIONS, "memory": "lots"}}, "slurm-option"),
        ({"options": {**OPTIONS, "memory": ["2GB"]}}, "slurm-option"),
        ({"options": {**OPTIONS, "config_name": "abacus"}}, "slurm-option"),
        ({"home": "$(rm -r /)"}, "wrong-value.*home"),
        ({"jobs": 0}, "wrong-value.*jobs"),
        ({"system": "abacus"}, "wrong-value.*system"),
        ({"queue": "gpu"}, "unknown-key.*queue"),
    ],
)
def test_k06_what_cannot_be_submitted_is_refused(
    tmp_path: Path, changed: dict[str, object], code: str
) -> None:
    with pytest.raises(Refused, match=code):
        job_script(read_workers(slurm_file(tmp_path, **changed)), "tcp://127.0.0.1:0", None)


@pytest.mark.parametrize(
    ("system", "options", "asked"),
    [
        ("pbs", {}, {"#PBS -q gpu", "#PBS -l select=1:ncpus=2:mem=1908MB", "#PBS -l walltime=00:30:00"}),
        ("lsf", {"lsf_units": "mb"}, {"#BSUB -q gpu", "#BSUB -n 2", "#BSUB -M 2000", "#BSUB -W 00:30:00"}),
        ("sge", {}, {"#$ -q gpu", "#$ -l h_rt=00:30:00"}),
    ],
)
def test_k06_other_batch_systems_have_scripts_of_the_same_worker(
    tmp_path: Path, system: str, options: dict[str, str], asked: set[str]
) -> None:
    file = slurm_file(tmp_path, system=system, options={**OPTIONS, **options})
    script = job_script(read_workers(file), "tcp://127.0.0.1:8786", None)
    assert asked <= set(script.splitlines())
    command = script.splitlines()[-1]
    assert " -m roundkit worker --scheduler tcp://127.0.0.1:8786 --name roundkit-0 --until-lost " in command
    assert "dask_worker" not in script


def test_k06_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    workers = read_workers(slurm_file(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(Refused, match=f"scheduler-port.*127.0.0.1, port {port}: Address already in use"),
            slurm_workers(workers, f"tcp://127.0.0.1:{port}", None),
        ):
            pass


@pytest.mark.parametrize("kind", ["local", "dask"])
def test_a_file_of_batch_workers_that_no_pool_would_read_is_refused(tmp_path: Path, kind: PoolKind) -> None:
    choice = PoolChoice(kind, "tcp://127.0.0.1:0", slurm=slurm_file(tmp_path))
    with pytest.raises(Refused, match=f"slurm-option.*the {kind} pool submits no workers"):
        chosen_pool(RoundFolder(tmp_path), choice)


@pytest.mark.parametrize("command", [partial(serve, until="idle"), close])
def test_k06_a_round_that_somebody_serves_submits_no_job(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., object]
) -> None:
    plain_repo(open_folder / "s", ["L1"]).freeze(open_folder / "round")
    folder = RoundFolder(open_folder / "round")
    programs = open_folder / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(open_folder))
    choice = PoolChoice("slurm", "tcp://127.0.0.1:0", slurm=slurm_file(open_folder))
    with (
        fake_slurm(programs, open_folder),
        hold_lock(folder.serve_lock, code="serve-running", what="serve"),
        pytest.raises(Refused, match="serve-running"),
    ):
        command(folder, report=print, pool=chosen_pool(folder, choice))
    assert not (open_folder / "started").exists()


def test_ctrl_c_still_asks_for_the_end_once_jobs_can_be_submitted() -> None:
    asked = """
import os, signal
from roundkit.rounds.stopping import stop_on_signal
with stop_on_signal() as stop:
    import roundkit.measure.cluster.slurm
    os.kill(os.getpid(), signal.SIGINT)
    print(stop.is_set)
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_k06_a_scheduler_on_the_network_needs_tls(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="tls-needed"):
        job_script(read_workers(slurm_file(tmp_path)), "tcp://10.0.0.1:0", None)


def test_k06_serve_where_no_job_can_be_submitted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(Refused, match=r"no-batch-system.*this machine has no sbatch"),
        slurm_workers(read_workers(slurm_file(tmp_path)), "tcp://127.0.0.1:0", None),
    ):
        pass


def submitting_machine(place: Path) -> tuple[Cluster, dict[str, str]]:
    """Return a machine that has a device ``a``, and what finds its fake batch system."""
    here = Cluster(place)
    here.declare(["a"])
    programs = place / "bin"
    programs.mkdir()
    sets = {"format": "roundkit-device-sets/1", "device_sets": fixture_sets(["a"])}
    (place / "sets.yaml").write_text(json.dumps(sets))
    return here, {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "FAKE_SLURM": str(place)}


@pytest.fixture
def batch_system(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a batch system that takes no job while there is a file ``refusing``."""
    here, env = submitting_machine(place)
    for name, value in {**here.environment, **env}.items():
        monkeypatch.setenv(name, value)
    with fake_slurm(place / "bin", place):
        yield place


def test_k05_a_scheduler_of_serve_listens_beyond_this_machine_at_its_own_address_alone(
    batch_system: Path,
) -> None:
    def listens() -> set[str]:
        found = psutil.Process().net_connections("tcp")
        return {f"{one.laddr.ip}:{one.laddr.port}" for one in found if one.status == psutil.CONN_LISTEN}

    before = listens()
    with slurm_workers(read_workers(slurm_file(batch_system)), "tcp://127.0.0.1:0", None) as submitted:
        opened = listens() - before
        assert submitted.address.removeprefix("tcp://") in opened
        assert {address.rpartition(":")[0] for address in opened} == {"127.0.0.1"}


def test_k06_a_job_that_is_not_taken_is_told_and_submitted_again(
    batch_system: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm, "_AGAIN_S", 0.2)
    (batch_system / "refusing").touch()
    workers = read_workers(slurm_file(batch_system))
    with slurm_workers(workers, "tcp://127.0.0.1:0", None) as submitted:
        pool = DaskPool(
            sets_of("a"),
            plan_digest=PLAN,
            store_sha256=STORE,
            scheduler=submitted.address,
            scratch=batch_system,
            missing=submitted.trouble,
        )
        with closing(pool):
            told = "sbatch does not take a job: sbatch: error: invalid partition specified: gpu; it is asked"
            wait_for(lambda: told in (pool.trouble() or ""), "word of the refusal")
            assert pool.free_sets() == ()
            (batch_system / "refusing").unlink()
            wait_for(pool.free_sets, "a free device set")
            assert submitted.trouble() is None
    assert (batch_system / "cancelled").read_text() == (batch_system / "started").read_text()
    assert "Traceback" not in capfd.readouterr().err


def test_k06_a_job_whose_worker_was_lost_is_submitted_anew(batch_system: Path) -> None:
    def connected() -> int:
        return sum("connected as" in log.read_text() for log in batch_system.glob("job-*.log"))

    def started() -> list[str]:
        return (batch_system / "started").read_text().split()

    workers = read_workers(slurm_file(batch_system))
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "0.1s"}),
        slurm_workers(workers, "tcp://127.0.0.1:0", None),
    ):
        wait_for(lambda: connected() == 1, "the worker of the first job")
        os.killpg(int(started()[0]), signal.SIGKILL)
        wait_for(lambda: connected() == 2, "the worker of the second job")
        assert len(started()) == 2


def test_k06_a_serve_whose_jobs_are_not_taken_ends_as_any_other(
    batch_system: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (batch_system / "refusing").touch()
    workers = read_workers(slurm_file(batch_system, jobs=2))
    with slurm_workers(workers, "tcp://127.0.0.1:0", None) as submitted:
        wait_for(lambda: len(submitted.refused) == 2, "the refusal of both jobs")
    assert not (batch_system / "started").exists()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_k06_a_round_with_a_fake_sbatch_runs_to_its_end(open_folder: Path) -> None:
    submitted = scene(open_folder / "s", {"L1": 0.5}, device_sets=fixture_sets(["a"]))
    with reachable_folder() as home:
        here, env = submitting_machine(home)
        words = ["--pool", "slurm", "--scheduler", "tcp://127.0.0.1:0", "--slurm", str(slurm_file(home))]
        with fake_slurm(home / "bin", home):
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
