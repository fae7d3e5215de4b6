"""A scheduler, a worker and Slurm jobs on this machine, whose devices are fixtures."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from docs.reading import Block
from docs.stage import Stage
from support.cluster import fake_slurm, fixture_sets, free_port
from support.killing import Scene, scene
from support.sample_evidence import export_sample, sample_round

from roundkit.analysis import add_parts, load
from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.store import open_store


def cluster(stage: Stage) -> None:
    devices = stage.root / "devices"
    devices.mkdir()
    (devices / "a.json").write_text("{}")
    (devices / "b.json").write_text("{}")
    stage.variables[FIXTURE_VARIABLE] = str(devices)
    stage.files["sets.yaml"] = _sets("a")
    nodes = stage.root / "sets.yaml"
    nodes.write_text(_sets("b"))
    # Four workers on one small machine would wait for one another.
    stage.names.update({"/shared/round/sets.yaml": str(nodes), "jobs: 4": "jobs: 1"})
    stage.names.update({"10.0.0.1": "127.0.0.1", "8786": str(free_port()), "9000": str(free_port())})
    submitted = _serve_round(stage, "first", "a")
    serve = "roundkit serve ROUND_DIR --pool dask"
    stage.on("dask scheduler", until=lambda: "Scheduler at" in stage.spoken())
    stage.on("dask scheduler --host 127.0.0.1", before=_alone, until=lambda: "Scheduler at" in stage.spoken())
    stage.on("roundkit serve ROUND_DIR --pool dask --scheduler tcp://127.0.0.1:8786 --until-idle")
    stage.on("roundkit worker", until=lambda: "connected" in stage.spoken())
    stage.on(serve, until=lambda: _measured(submitted), ends="roundkit drain ROUND_DIR")
    stage.stack.enter_context(fake_slurm(stage.root / "bin", stage.root))
    stage.variables["FAKE_SLURM"] = str(stage.root)
    stage.on("roundkit cluster job-script", before=_to_slurm)
    stage.on("frames/", check=lambda block, _: _parts_lie_there(block, stage.root))


def _sets(device: str) -> str:
    return json.dumps({"format": "roundkit-device-sets/1", "device_sets": fixture_sets([device])})


def _serve_round(stage: Stage, name: str, device: str) -> Scene:
    submitted = scene(stage.root / name, {"L1": 0.5}, device_sets=fixture_sets([device]))
    stage.names["ROUND_DIR"] = str(submitted.folder.root)
    return submitted


def _measured(submitted: Scene) -> bool:
    try:
        with open_store(submitted.folder.database, read_only=True) as store:
            return [ticket.state for ticket in store.tickets.all()] == ["measured"]
    except sqlite3.OperationalError:  # serve has not made it yet
        return False


def _alone(stage: Stage) -> None:
    """The several machines are done: another round, on one."""
    stage.end_beside()
    _serve_round(stage, "alone", "a")
    stage.names["8786"] = str(free_port())


def _to_slurm(stage: Stage) -> None:
    submitted = _serve_round(stage, "second", "b")
    stage.names["8786"] = str(free_port())
    serve = "roundkit serve ROUND_DIR --pool slurm"
    stage.on(serve, until=lambda: _measured(submitted), ends="roundkit drain ROUND_DIR")


def _parts_lie_there(block: Block, root: Path) -> None:
    """Write tables in parts, and find the files where the page shows them."""
    evidence = export_sample(root / "sample/r01", sample_round(), root / "scratch")
    ledgers = load(evidence)
    for table in ("rounds", "tickets"):
        frame = getattr(ledgers, table).collect()
        add_parts(table, [frame], root / "frames", rows_a_part=max(1, frame.height // 2))
    for line in block.text.splitlines():
        name = line.split("#")[0].strip().replace("code-search", "demo")
        assert (root / "frames" / name.removeprefix("frames/")).exists(), f"{block.place}: {name}"
