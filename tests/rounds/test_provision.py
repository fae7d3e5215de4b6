"""R28: a plan's ``provision`` command fetches once what every build and trial then reads."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.program import BENCH, BUILD
from support.synthetic import CampaignRepo, knob, scripted_lane

from roundkit.audit import audit_round
from roundkit.core.errors import Refused
from roundkit.evidence import open_evidence
from roundkit.rounds.close import close
from roundkit.rounds.control import drain
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve
from roundkit.store import open_store

# Fetches a module from a server outside the boundary, and counts how often it did.
FETCH = """\
import os, socket, sys
with socket.create_connection(("127.0.0.1", PORT), timeout=10) as line:
    module = line.makefile().read()
os.umask(0o077)
if not module:
    sys.exit("nothing came")
with open("/round/provision/fetched.py", "w") as stream:
    stream.write(module)
"""
# Needs the module, and neither can change it nor reaches the network.
NEEDS = """\
import socket, sys
sys.path.insert(0, "/round/provision")
import fetched
assert fetched.FACTOR == 1
for path in ("/round/provision/fetched.py", "/round/provision/more.py"):
    try:
        open(path, "a")
    except OSError:
        pass
    else:
        sys.exit("wrote to " + path)
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=10)
except OSError:
    pass
else:
    sys.exit("reached the network")
"""
TRIAL_NEEDS = "import sys\nsys.path.insert(0, '/round/provision')\nimport fetched\n"


class Source:
    """A server that hands out the module; ``served`` counts."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.served = 0
        self.module = "FACTOR = 1\n"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            self.served += 1
            with line:
                line.sendall(self.module.encode())


@pytest.fixture
def source() -> Iterator[Source]:
    made = Source()
    yield made
    made.close()


@pytest.fixture
def folder(three_lanes: CampaignRepo, open_folder: Path, lease_root: Path, source: Source) -> RoundFolder:
    """The three lanes, launched; the build and the benchmark need what the plan provisions."""
    files = {
        "fetch.py": FETCH.replace("PORT", str(source.port)),
        "build.py": NEEDS.replace("PORT", str(source.port)) + BUILD,
        "bench/bench.py": TRIAL_NEEDS + BENCH,
    }
    three_lanes.start_from(three_lanes.commit(files))
    command = {"argv": ["{python}", "-I", "-S", "fetch.py"], "timeout_s": 20}
    three_lanes.edit_campaign(lambda plan: plan.update(provision=command))
    return three_lanes.launched(open_folder / "round")[0]


@pytest.mark.slow
def test_r28_provisioned_once_and_read_only_for_builds_and_trials(
    folder: RoundFolder, source: Source
) -> None:
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.6)})
    scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.5)})
    lines: list[str] = []
    serve(folder, until="idle", report=lines.append)
    serve(folder, until="idle", report=lines.append)
    outcome = close(folder, report=lines.append)
    assert source.served == 1
    assert sum("provisioning" in line for line in lines) == 1
    assert [ticket.verdict and ticket.verdict.verdict for ticket in outcome.ledger.tickets] == ["pass"] * 2
    assert outcome.ledger.advanced
    assert [check for check in audit_round(outcome.evidence).checks if not check.passed] == []
    evidence = open_evidence(outcome.evidence)
    fields = [event.fields for event in evidence.events if event.kind == "provisioned"]
    assert [field["network"] for field in fields] == ["host"]
    mounts = [
        mount
        for experiment in evidence.experiments()
        for boundary in experiment.boundaries.values()
        for mount in boundary.mounts
        if mount.at == "/round/provision"
    ]
    assert {(mount.source, mount.mode) for mount in mounts} == {("{provision}", "ro")}


def test_r28_a_lane_may_not_change_what_the_provision_command_names(folder: RoundFolder) -> None:
    assert "fetch.py" in json.loads(folder.plan_file.read_bytes())["protected_paths"]


def test_r28_what_was_provisioned_and_then_changed_is_refused(folder: RoundFolder, source: Source) -> None:
    serve(folder, until="idle", report=lambda _: None)
    (folder.provision / "more.py").write_text("")
    with pytest.raises(Refused, match="provision-changed"):
        serve(folder, until="idle", report=lambda _: None)
    (folder.provision / "more.py").unlink()
    serve(folder, until="idle", report=lambda _: None)
    (folder.provision / "fetched.py").rename(folder.root / "fetched.py")
    with pytest.raises(Refused, match="provision-changed"):
        serve(folder, until="idle", report=lambda _: None)
    assert source.served == 1


def test_r28_a_drain_that_comes_while_something_is_provisioned_is_heeded(folder: RoundFolder) -> None:
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if line.startswith("provisioning"):
            drain(folder)

    assert serve(folder, until="idle", report=say).ended == "drained"
    assert serve(folder, until="idle", report=say).ended == "idle"  # it was for the first one alone
    assert sum(line.startswith("provisioning") for line in lines) == 1


def test_r28_a_failing_provision_command_is_refused_and_run_again(
    folder: RoundFolder, source: Source
) -> None:
    source.module = ""
    with pytest.raises(Refused, match=r"provision-failed.*nothing came"):
        serve(folder, until="idle", report=lambda _: None)
    assert not folder.provision.exists()
    with open_store(folder.database, read_only=True) as store:
        assert [event for event in store.events.all() if event.kind == "provisioned"] == []
    source.module = "FACTOR = 1\n"
    serve(folder, until="idle", report=lambda _: None)
    assert (folder.provision / "fetched.py").read_text() == source.module


def test_r28_a_plan_without_one_has_the_bytes_that_it_always_had(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    plan = three_lanes.freeze(open_folder / "round")
    assert "provision" not in plan.to_json_value()["campaign"]
