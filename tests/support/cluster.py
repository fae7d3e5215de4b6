"""A Dask scheduler and roundkit workers as processes of their own, on this machine."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.killing import environment, wait_for

from roundkit.host.devices.fixture import FIXTURE_VARIABLE


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    """

    root: Path
    port: int = field(default_factory=free_port)
    tls: Path | None = None
    worker_ttl: str = "60s"
    scheduler: subprocess.Popen[str] | None = None
    workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{'tls' if self.tls else 'tcp'}://127.0.0.1:{self.port}"

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
                sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
                "--port", str(self.port), "--no-dashboard", "--no-jupyter", *tls,
            ],
            env={**self.environment, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": self.worker_ttl},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        wait_for(self._answers, "the scheduler")

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def start_worker(self, name: str, sets: Sequence[dict[str, Any]], *, wait: bool = True) -> None:
        self.declare([device for one in sets for device in one["devices"] if one["platform"] == "fixture"])
        file = self.root / f"{name}-sets.yaml"
        file.write_text(json.dumps({"format": "roundkit-device-sets/1", "device_sets": list(sets)}))
        log = (self.root / f"{name}.log").open("a")
        tls = ["--tls", str(self.tls)] if self.tls else []
        self.workers[name] = subprocess.Popen(
            [
                sys.executable, "-m", "roundkit", "worker", "--scheduler", self.address, "--name", name,
                "--device-sets", str(file), "--home", str(self.root / name), *tls,
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
        return subprocess.Popen(
            [sys.executable, "-m", "roundkit", *map(str, words)],
            env={**self.environment, **(env or {})},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

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
    """Run a scheduler, and end it and every worker afterwards."""
    made = Cluster(root, tls=tls, worker_ttl=worker_ttl)
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o711)
    try:
        made.start_scheduler()
        yield made
    finally:
        made.stop()
