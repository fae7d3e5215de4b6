"""A real driver process and a real worker process with their pipes crossed."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.processes import ended_with_test

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a trial left: exit codes, what was said, the result (None where no file was written), outputs."""

    driver_exit: int
    driver_stderr: str
    worker_exit: int
    worker_stderr: str
    result: dict | None
    outputs: dict

    @property
    def latencies_ms(self) -> list[float]:
        return self.result["metrics"]["latency_ms"]


@pytest.fixture(scope="session")
def harness_mount(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds roundkit/harness and nothing else of roundkit, as inside the boundary."""
    mount = tmp_path_factory.mktemp("mount")
    (mount / "roundkit").mkdir()
    (mount / "roundkit" / "harness").symlink_to(REPOSITORY / "roundkit" / "harness")
    return mount


@pytest.fixture
def trial(tmp_path: Path, harness_mount: Path) -> Callable[..., Outcome]:
    """Run one trial: ``trial(run=…, candidate=…)`` with the body of the driver's run and a module's text."""

    def run_trial(
        *,
        candidate: str,
        run: str = "with session.timed():\n    session.save('answer', session.call('answer', [1, 2, 3]))",
        repetitions: int = 1,
        options: str = "",
        worker: str = "",
        environment: dict[str, str] | None = None,
        flags: tuple[str, ...] = ("-s", "-P"),
    ) -> Outcome:
        protected, checkout, outputs = tmp_path / "bench", tmp_path / "checkout", tmp_path / "outputs"
        for folder in (protected, checkout, outputs):
            folder.mkdir()
        (checkout / "candidate.py").write_text(textwrap.dedent(candidate))
        (protected / "worker.py").write_text(
            textwrap.dedent(worker)
            or "from roundkit.harness import worker\n"
            f"worker({{'answer': 'candidate:answer'}}{options and ', ' + options})\n"
        )
        (protected / "driver.py").write_text(
            "from roundkit.harness import driver\n"
            "def run(session):\n"
            f"{textwrap.indent(textwrap.dedent(run), '    ')}\n"
            f"driver(run{options and ', ' + options})\n"
        )
        result = tmp_path / "result.json"
        driver_environment = {
            "PYTHONPATH": str(harness_mount),
            "ROUNDKIT_RESULT_PATH": str(result),
            "ROUNDKIT_OUTPUT_DIR": str(outputs),
            "ROUNDKIT_SEED": "7",
            "ROUNDKIT_REPETITIONS": str(repetitions),
        } | (environment or {})
        python = [sys.executable, *flags]
        from_worker, to_driver = os.pipe()
        from_driver, to_worker = os.pipe()
        worker_process = ended_with_test(
            subprocess.Popen(
                [*python, str(protected / "worker.py")],
                cwd=checkout,
                env={"PYTHONPATH": str(harness_mount)},
                stdin=from_driver,
                stdout=to_driver,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        driver_process = ended_with_test(
            subprocess.Popen(
                [*python, str(protected / "driver.py")],
                cwd=tmp_path,
                env=driver_environment,
                stdin=from_worker,
                stdout=to_worker,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        for descriptor in (from_worker, to_driver, from_driver, to_worker):
            os.close(descriptor)
        _, driver_stderr = driver_process.communicate(timeout=60)
        _, worker_stderr = worker_process.communicate(timeout=60)
        return Outcome(
            driver_exit=driver_process.returncode,
            driver_stderr=driver_stderr,
            worker_exit=worker_process.returncode,
            worker_stderr=worker_stderr,
            result=json.loads(result.read_text()) if result.exists() else None,
            outputs={path.stem: json.loads(path.read_text()) for path in outputs.glob("*.json")},
        )

    return run_trial
