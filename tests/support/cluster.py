"""A Dask scheduler and roundkit workers as processes, on loopback or on a network of namespaces."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.killing import environment, wait_for
from support.network import Network, network
from support.processes import ended_with_test

from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.measure.cluster.certificates import make_certificates

_SCHEDULER = "scheduler"

_SBATCH = """#!/bin/sh
if [ -e "$FAKE_SLURM/refusing" ]; then
    echo "sbatch: error: invalid partition specified: gpu" >&2
    exit 1
fi
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


@contextmanager
def fake_slurm(programs: Path, home: Path) -> Iterator[None]:
    """Put an ``sbatch`` that starts jobs on this machine, and its ``scancel``, into a folder of the PATH.

    Args:
        programs: The folder.
        home: What ``FAKE_SLURM`` names: jobs' scripts and logs, and who was ``started`` and ``cancelled``. No
            job is taken while there is a file ``refusing``.
    """
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    try:
        yield
    finally:
        started = home / "started"
        for group in started.read_text().split() if started.exists() else ():
            with suppress(ProcessLookupError):
                os.killpg(int(group), signal.SIGKILL)


def free_port() -> int:
    """Return a port that nobody listens at, below those that the kernel gives to new connections."""
    while True:
        port = secrets.randbelow(12_000) + 20_000
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def fixture_sets(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return device sets of one fixture device each, named after it."""
    return [{"id": name, "platform": "fixture", "devices": [name]} for name in names]


@dataclass
class Cluster:
    """What runs, and where.

    Attributes:
        root: Holds devices, leases and the workers' folders; passable for everybody.
        port: The scheduler's, the same after it was started again.
        tls: Folder of certificates, None without TLS.
        worker_ttl: After which silence the scheduler takes a worker for lost.
        network: The network that scheduler and workers are members of, each by its name; None on loopback.
    """

    root: Path
    port: int = field(default_factory=free_port)
    tls: Path | None = None
    worker_ttl: str = "60s"
    network: Network | None = None
    scheduler: subprocess.Popen[str] | None = None
    workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return "127.0.0.1" if self.network is None else self.network.members[_SCHEDULER]

    @property
    def address(self) -> str:
        return f"{'tls' if self.tls else 'tcp'}://{self.host}:{self.port}"

    def _inside(self, member: str) -> list[str]:
        return [] if self.network is None else self.network.inside(member)

    def cut_off(self, worker: str) -> None:
        """Cut a worker off from everybody, without its knowing; on loopback, stop it."""
        if self.network is None:
            self.workers[worker].send_signal(signal.SIGSTOP)
        else:
            self.network.cut(worker)

    def let_back(self, worker: str) -> None:
        """End what :meth:`cut_off` began."""
        if self.network is None:
            self.workers[worker].send_signal(signal.SIGCONT)
        else:
            self.network.mend(worker)

    @property
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def devices(self) -> Path:
        return self.root / "devices"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **environment(self.leases),
            FIXTURE_VARIABLE: str(self.devices),
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
        }

    def words(self) -> list[str]:
        """Return the options that name this cluster."""
        tls = ["--tls", str(self.tls)] if self.tls else []
        return ["--pool", "dask", "--scheduler", self.address, *tls]

    def declare(self, names: Sequence[str], content: str = "{}") -> None:
        self.devices.mkdir(exist_ok=True)
        for name in names:
            (self.devices / f"{name}.json").write_text(content)

    def start_scheduler(self) -> None:
        tls = []
        if self.tls is not None:
            tls = [
                "--tls-ca-file",
                str(self.tls / "authority.pem"),
                "--tls-cert",
                str(self.tls / "cluster.pem"),
            ]
            tls += ["--tls-key", str(self.tls / "cluster.key"), "--protocol", "tls"]
        self.scheduler = subprocess.Popen(
            [
                *self._inside(_SCHEDULER),
                sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", self.host,
                "--port", str(self.port), "--dashboard-address", "127.0.0.1:0",
                "--no-dashboard", "--no-jupyter", *tls,
            ],
            env={**self.environment, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": self.worker_ttl},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        wait_for(self._answers, "the scheduler")

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    def start_worker(
        self,
        name: str,
        sets: Sequence[dict[str, Any]],
        *,
        wait: bool = True,
        prelude: str = "",
        home: Path | None = None,
        tls: Path | None = None,
        port: int = 0,
    ) -> None:
        """Start a worker.

        Args:
            name: Its name.
            sets: What it offers.
            wait: Return once it is connected.
            prelude: Python that it runs first, for one that is not as it should be.
            home: Its folder; None for one named after it.
            tls: Its certificates; None for the cluster's.
            port: Where it listens; 0 for any.
        """
        self.declare([device for one in sets for device in one["devices"] if one["platform"] == "fixture"])
        file = self.root / f"{name}-sets.yaml"
        file.write_text(json.dumps({"format": "roundkit-device-sets/1", "device_sets": list(sets)}))
        log = (self.root / f"{name}.log").open("a")
        words = ["--tls", str(tls or self.tls)] if self.tls else []
        start = ["-c", f"{prelude}\nfrom roundkit.cli import main\nmain()"] if prelude else ["-m", "roundkit"]
        self.workers[name] = subprocess.Popen(
            [
                *self._inside(name),
                sys.executable, *start, "worker", "--scheduler", self.address, "--name", name,
                "--device-sets", str(file), "--home", str(home or self.root / name),
                "--port", str(port), *words,
            ],
            env=self.environment, stdout=log, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        log.close()
        if wait:
            before = self.said(name).count("connected")
            wait_for(
                lambda: self.said(name).count("connected") > before or self._ended(name), f"worker {name}"
            )

    def said(self, name: str) -> str:
        return (self.root / f"{name}.log").read_text()

    def _ended(self, name: str) -> bool:
        if self.workers[name].poll() is not None:
            raise AssertionError(f"worker {name} ended: {self.said(name)}")
        return False

    def kill(self, process: subprocess.Popen[str] | None) -> None:
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        if process is not None:
            process.wait()

    def stop(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            self.kill(process)

    def start(self, *words: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a roundkit command beside the cluster, in its environment."""
        return ended_with_test(subprocess.Popen(
            [sys.executable, "-m", "roundkit", *map(str, words)],
            env={**self.environment, **(env or {})},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ))  # fmt: skip

    def run(self, *words: str | Path, expect: int = 0, timeout: float = 240) -> str:
        """Run a roundkit command to its end and return what it said."""
        process = self.start(*words)
        said, _ = process.communicate(timeout=timeout)
        assert process.returncode == expect, said + "".join(
            f"\n--- {name}\n{self.said(name)}" for name in self.workers
        )
        return said


@contextmanager
def cluster(root: Path, *, tls: Path | None = None, worker_ttl: str = "60s") -> Iterator[Cluster]:
    """Run a scheduler on loopback, and end it and every worker afterwards."""
    with _running(Cluster(root, tls=tls, worker_ttl=worker_ttl)) as made:
        yield made


@contextmanager
def cluster_apart(root: Path, *workers: str, worker_ttl: str = "60s") -> Iterator[Cluster]:
    """Run a scheduler, over TLS and in a network namespace of its own, and have one for each worker.

    On loopback where this machine allows no namespaces, which pytest shows as a warning.

    Args:
        root: As of a cluster.
        workers: Names of the workers that will be started.
        worker_ttl: As of a cluster.
    """
    root.mkdir(parents=True, exist_ok=True)
    make_certificates(root / "certs", days=1)
    with network(_SCHEDULER, *workers) as members:
        made = Cluster(root, tls=root / "certs", worker_ttl=worker_ttl, network=members)
        with _running(made):
            yield made


@contextmanager
def _running(made: Cluster) -> Iterator[Cluster]:
    made.root.mkdir(parents=True, exist_ok=True)
    made.root.chmod(0o711)
    try:
        made.start_scheduler()
        yield made
    finally:
        made.stop()
