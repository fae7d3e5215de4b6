"""What a worker refuses before it takes any work, and what is told where the extra is not installed."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from support.cluster import free_port

from roundkit.core.errors import Refused, RoundkitError
from roundkit.host.probes import Layer
from roundkit.measure.cluster import worker
from roundkit.measure.cluster.extra import require
from roundkit.measure.cluster.sets import read_sets
from roundkit.measure.cluster.worker import Say, refuse_unconfined, run_worker

_SETS = """format: roundkit-device-sets/1
device_sets:
  - {id: a, platform: cpu, devices: ["0"]}
"""


def test_a_worker_that_cannot_confine_takes_no_work_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "sets.yaml").write_text(_SETS)
    # Without the programs behind the boundary, as on a machine where nothing was installed.
    program = (
        "import sys\n"
        "from roundkit.host.confine import backend, unavailable\n"
        "import roundkit.host.probes as probes\n"
        "def missing():\n"
        "    why = ('bwrap-missing', 'there is no bubblewrap', 'install it')\n"
        "    raise unavailable.ConfinementUnavailable(*why)\n"
        "probes.find_backend = missing\n"
        "from roundkit.cli import main\n"
        "sys.argv = ['roundkit', 'worker', '--scheduler', 'tcp://127.0.0.1:9', *sys.argv[1:]]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--device-sets", tmp_path / "sets.yaml", "--home", tmp_path / "home"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "[cannot-confine]" in done.stderr
    assert "there is no bubblewrap" in done.stderr
    assert "install it" in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_a_batch_jobs_worker_does_not_wait_for_a_scheduler_that_never_comes(tmp_path: Path) -> None:
    (tmp_path / "sets.yaml").write_text(_SETS)
    program = (
        "import sys\n"
        "import roundkit.measure.cluster.worker as worker\n"
        "worker._PATIENCE_S = 0\n"
        "from roundkit.cli import main\n"
        "sys.argv = ['roundkit', 'worker', '--until-lost', *sys.argv[1:]]\n"
        "main()\n"
    )
    where = ("--scheduler", f"tcp://127.0.0.1:{free_port()}", "--device-sets", tmp_path / "sets.yaml")
    done = subprocess.run(
        [sys.executable, "-c", program, *where, "--home", tmp_path / "home"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "was never there, so this worker ends" in done.stderr
    assert "Traceback" not in done.stderr


def offer(folder: Path, port_of: socket.socket, say: Say) -> None:
    """Run a worker that is to listen where somebody else does already."""
    (folder / "sets.yaml").write_text(_SETS)
    run_worker(
        "tcp://127.0.0.1:9",
        folder / "sets.yaml",
        home=folder / "home",
        tls=None,
        name=None,
        keep_trees=1,
        keep_records=timedelta(days=1),
        say=say,
        hold=lambda _home: nullcontext(),
        port=port_of.getsockname()[1],
    )


def test_a_port_that_is_taken_is_no_trouble_of_the_scheduler(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Refused, match="worker-port"):
        offer(tmp_path, taken, print)
    assert not (tmp_path / "home").exists()


def test_a_port_that_is_taken_at_another_address_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "probe_confinement", enough)
    with socket.create_server(("127.0.0.2", 0)) as taken, pytest.raises(RoundkitError, match="enough"):
        offer(tmp_path, taken, print)


def enough() -> None:
    raise RoundkitError("enough")


def test_a_port_that_somebody_takes_later_is_no_trouble_of_the_scheduler_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "check_worker_port", lambda _host, _port: None)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "again" in line:
            raise RoundkitError("enough")

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RoundkitError, match="enough"):
        offer(tmp_path, taken, say)
    assert said[-1] == "another program took the port of this worker (--port); it is tried again and again"


def test_layers_that_are_only_nice_to_have_keep_nobody_from_working() -> None:
    refuse_unconfined([Layer(name="cgroup for memory", present=False, needed=False)])
    with pytest.raises(Refused, match=r"cannot-confine.*escape"):
        refuse_unconfined([Layer(name="escape: write outside", present=False, detail="got through")])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "wrong-value.*no keys"),
        ("device_sets: []\n", "missing-key.*format"),
        (_SETS.replace("cpu", "abacus"), r"wrong-value.*platform \(line 3\)"),
        (_SETS.replace('"0"', "0"), "wrong-value.*valid string"),
        (_SETS.replace("id: a", "id: ../a"), "wrong-value.*id"),
        (_SETS.replace("}", ", limits: {max_heat: 1}}"), "unknown-key.*max_heat"),
        (_SETS + '  - {id: a, platform: cpu, devices: ["1"]}\n', "device-twice.*a stands"),
        (_SETS + '  - {id: b, platform: cpu, devices: ["0"]}\n', "device-twice.*cpu:0"),
        (_SETS + '  - {id: b, platform: cpu, devices: ["00"]}\n', "device-twice.*cpu:0"),
        ("{", "malformed-yaml"),
        ("\0", "malformed-yaml"),
        ("!!python/object/apply:os.system [exit]", "wrong-value"),
    ],
)
def test_a_file_of_sets_that_says_nothing_clear_is_refused(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "sets.yaml").write_text(text)
    with pytest.raises(Refused, match=code):
        read_sets(tmp_path / "sets.yaml")


_WITHOUT_EXTRA = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dask", "dask_jobqueue", "distributed", "cryptography", "pynvml"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import roundkit.rounds.serve, roundkit.rounds.close
from roundkit.host.devices import platform_named
print(platform_named("cuda").inspect("GPU-0").problem)
from roundkit.cli import main
scheduler = ("--scheduler", "tcp://127.0.0.1:9")
for words in (("worker", "--device-sets", "x", *scheduler), ("cluster", "cert", sys.argv[1]),
              ("cluster", "job-script", "x", *scheduler)):
    sys.argv = ["roundkit", *words]
    try:
        main()
    except SystemExit as leave:
        print(leave.code)
"""


def test_without_the_extra_everything_imports_and_commands_say_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRA, tmp_path / "certs"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    told, *codes = done.stdout.splitlines()
    assert "roundkit[cluster]" in told
    assert codes == ["3", "3", "3"]
    assert done.stderr.count("[missing-extra]") == 3
    assert done.stderr.count("pip install 'roundkit[cluster]'") == 3
    with pytest.raises(Refused, match="missing-extra"):
        require("no_such_library")
