"""What a lane's agent can reach from behind its boundary, shown with a program that tries."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path, PurePosixPath
from typing import Any

import psutil
import pytest
from support.loopback import Quiet, served
from support.synthetic import campaign_repo, knob, reachable_folder

from roundkit.agents.lane_boundary import HOME, Credential, HomeFile, LaneFacts, bound_lane, lane_grant
from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.core.files import tree_digest
from roundkit.host.confine import Execution, Mount, Network
from roundkit.rounds.layout import RoundFolder, read_plan

PYTHON = "/usr/bin/python3"
EVERYTHING: frozenset[str] = frozenset()

AGENT = """
import glob, json, os, subprocess, sys
clone, other, store, repository, credential, elsewhere = sys.argv[1:7]
told = {}

def attempt(name, action):
    try:
        got = action()
    except BaseException as error:
        told[name] = type(error).__name__
    else:
        told[name] = "SUCCEEDED" if got is None else got

def write(path):
    with open(path, "w") as stream:
        stream.write("owned")

attempt("allowed: edit", lambda: write(clone + "/knobs/new.json"))
attempt("allowed: home", lambda: write(os.environ["HOME"] + "/kept"))
attempt("allowed: scratch", lambda: write(os.environ["TMPDIR"] + "/x"))
attempt("allowed: outbox", lambda: write(clone + "/.roundkit/outbox/junk"))
attempt("git config", lambda: write(clone + "/.git/config"))
attempt("git hook", lambda: write(clone + "/.git/post-checkout"))
attempt("git away", lambda: os.rename(clone + "/.git", clone + "/.git.old"))
attempt("git object", lambda: write(clone + "/.git/objects/x"))
attempt("status", lambda: write(clone + "/.roundkit/status/fake.json"))
attempt("status away", lambda: os.rename(clone + "/.roundkit/status", clone + "/.roundkit/old"))
attempt("control away", lambda: os.rename(clone + "/.roundkit", clone + "/.old"))
attempt("lane file", lambda: write(clone + "/.roundkit/lane.json"))
attempt("wrapper", lambda: write(clone + "/.roundkit/round"))
attempt("vanishes: beside the clone", lambda: write(os.path.dirname(clone) + "/x"))
attempt("other lane", lambda: os.listdir(other))
attempt("other lane, by dots", lambda: os.listdir(clone + "/../" + os.path.basename(other)))
attempt("store", lambda: os.listdir(store))
attempt("secret", lambda: open(store + "/secret").read())
attempt("plan", lambda: open(os.path.dirname(store) + "/round-plan.json").read())
attempt("campaign repository", lambda: os.listdir(repository))
attempt("credential that is not named", lambda: open(elsewhere).read())
attempt("the credential's own file", lambda: open(credential).read())
attempt("credential, changed", lambda: write(os.environ["HOME"] + "/.tool/key"))
attempt("credential, removed", lambda: os.unlink(os.environ["HOME"] + "/.tool/key"))
attempt("device", lambda: [os.stat("/dev/" + name) for name in ("nvidia0", "kvm", "dri", "sda", "vda")])
attempt("system", lambda: write("/usr/x"))

told["key"] = open(os.environ["HOME"] + "/.tool/key").read()
told["before"] = os.path.exists(os.environ["HOME"] + "/before")
write(os.environ["HOME"] + "/before")
told["environment"] = dict(os.environ)
told["cwd"] = os.getcwd()
told["users"] = sorted({os.stat(path).st_uid for path in glob.glob("/proc/[0-9]*")})
with open("knobs/L1.json", "w") as stream:
    stream.write(sys.argv[7])
os.unlink("knobs/new.json")
os.unlink(".roundkit/outbox/junk")
told["submitted"] = json.loads(subprocess.check_output([sys.executable, ".roundkit/round", "submit"]))
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Lane:
    folder: RoundFolder
    facts: LaneFacts
    program: Path
    outside: Path

    def run(self, *argv: str, facts: LaneFacts | None = None, deadline_s: float = 60) -> Execution:
        return bound_lane(
            argv,
            lane_grant(facts or self.facts),
            deadline=Deadline.after(deadline_s),
            limits=read_plan(self.folder).campaign.limits,
        )

    def agent(self, value: float, facts: LaneFacts | None = None) -> dict[str, Any]:
        """Run the agent that tries everything and then submits, and return what it was told."""
        clone, other = self.folder.clone("L1"), self.folder.clone("L2")
        places = (clone, other, self.folder.store, self.program, self.outside / "key", self.outside / "other")
        done = self.run(PYTHON, "-c", AGENT, *map(str, places), knob(value), facts=facts)
        assert (done.end_reason, done.exit_code) == ("exited", 0), done
        told: dict[str, Any] = json.loads(done.stdout_tail or "")
        return told


@pytest.fixture(scope="module")
def lane() -> Iterator[Lane]:
    """Lane L1 of a launched round, with a key of the owner's that nobody else may read."""
    with reachable_folder() as root:
        repo = campaign_repo(root)
        folder, _ = repo.launched(root / "round")
        outside = root / "owner"
        outside.mkdir(mode=0o755)
        for name in ("key", "other"):
            (outside / name).write_text(f"the {name}")
            (outside / name).chmod(0o600)
        (folder.root / "homes").mkdir()
        facts = LaneFacts(
            clone=folder.clone("L1"),
            home=folder.root / "homes" / "L1",
            hidden=(folder.root, repo.root),
            credentials=(Credential(outside / "key", PurePosixPath(".tool/key")),),
            environment={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        )
        yield Lane(folder, facts, repo.root, outside)


def fingerprints(lane: Lane) -> list[str]:
    """Return digests of all that an agent must not change."""
    clone = lane.folder.clone("L1")
    places = (lane.folder.store, lane.folder.clone("L2"), clone / ".git", clone / ".roundkit" / "status")
    digests = [tree_digest(place, skip=EVERYTHING) for place in (*places, lane.program, lane.outside)]
    return digests + [(clone / ".roundkit" / name).read_text() for name in ("lane.json", "round")]


def test_fault_19_d03_an_agent_changes_its_clone_and_nothing_else(lane: Lane) -> None:
    before = fingerprints(lane)
    told = lane.agent(0.2)

    answers = {name: result for name, result in told.items() if isinstance(result, str)}
    # The folder of this test lies below /tmp, and /tmp is private inside: what lands there is gone.
    got_through = {name for name, result in answers.items() if result == "SUCCEEDED"}
    assert got_through - {"vanishes: beside the clone"} == {n for n in told if n.startswith("allowed: ")}, (
        told
    )
    denied = answers.keys() - got_through - {"key", "cwd"}
    assert len(denied) >= 20
    assert all(answers[name].endswith("Error") for name in denied), told
    assert fingerprints(lane) == before
    assert sorted(path.name for path in lane.folder.lanes.iterdir()) == ["L1", "L2", "L3"]
    assert told["submitted"]["status"] == "queued"
    assert told["cwd"] == str(lane.folder.clone("L1"))
    assert told["environment"] == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(HOME),
        "TMPDIR": str(lane.folder.clone("L1") / ".roundkit" / "scratch"),
    }
    # The credential that is named is there, and no copy of it is left anywhere.
    assert told["key"] == "the key"
    assert (lane.outside / "key").stat().st_mode & 0o777 == 0o600
    made = list(lane.folder.root.rglob("*"))
    assert [path for path in made if path.is_file() and path.read_bytes() == b"the key"] == []
    # Whoever ran it, everything is the coordinator's again.
    assert {path.lstat().st_uid for path in made} == {os.geteuid()}


def test_the_home_is_the_lanes_own_and_stays_for_its_next_attempt(lane: Lane) -> None:
    mine = replace(lane.facts, home=lane.folder.root / "homes" / "mine")
    others = replace(lane.facts, home=lane.folder.root / "homes" / "others", credentials=())
    first = lane.agent(0.3, mine)
    look = lane.run("/bin/ls", "-A", str(HOME), facts=others)
    second = lane.agent(0.4, mine)

    assert (first["before"], look.stdout_tail, second["before"]) == (False, "", True)
    assert first["submitted"]["ticket"] != second["submitted"]["ticket"]


def test_a_status_that_the_coordinator_writes_meanwhile_is_seen(lane: Lane) -> None:
    status = lane.folder.status("L1")
    wait = "touch .roundkit/scratch/here; until [ -e .roundkit/status/new ]; do sleep 0.01; done; echo seen"
    kept: list[Execution] = []
    thread = threading.Thread(target=lambda: kept.append(lane.run("/bin/sh", "-c", wait)))
    thread.start()
    here = lane.folder.clone("L1") / ".roundkit" / "scratch" / "here"
    until = Deadline.after(60)
    while not here.exists() and thread.is_alive() and not until.expired():
        thread.join(0.01)
    (status / "new").write_text("{}")
    thread.join()

    assert [done.stdout_tail for done in kept] == ["seen\n"], kept


def test_d04_children_that_detach_are_gone_after_the_deadline(lane: Lane) -> None:
    marker = f"rk-lane-{os.getpid()}"
    loop = f"while :; do sleep 1; done; : {marker}"
    script = f"trap '' TERM; (setsid /bin/sh -c '{loop}' &) ; setsid nohup /bin/sh -c '{loop}' & {loop}"
    done = lane.run("/bin/sh", "-c", script, deadline_s=2)

    assert done.end_reason == "deadline"
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if marker in line] == []


def test_an_agent_ends_as_soon_as_its_caller_wants_it(lane: Lane) -> None:
    stop_read, stop_write = os.pipe()
    started = lane.folder.clone("L1") / ".roundkit/scratch/started"
    kept: list[Execution] = []

    def run() -> None:
        script = "touch .roundkit/scratch/started; setsid sleep 600 & sleep 600"
        kept.append(
            bound_lane(
                ("/bin/sh", "-c", script), lane_grant(lane.facts), deadline=Deadline.after(60),
                limits=read_plan(lane.folder).campaign.limits, stop=stop_read,
            )
        )  # fmt: skip

    thread = threading.Thread(target=run)
    thread.start()
    until = Deadline.after(60)
    while not started.exists() and not until.expired():
        thread.join(0.01)
    os.write(stop_write, b"x")
    thread.join()
    again = bound_lane(
        ("/bin/true",), lane_grant(lane.facts), deadline=Deadline.after(60),
        limits=read_plan(lane.folder).campaign.limits, stop=stop_read,
    )  # fmt: skip
    for descriptor in (stop_read, stop_write):
        os.close(descriptor)

    assert [(done.end_reason, done.exit_code) for done in (*kept, again)] == [("stopped", None)] * 2


def test_streams_are_closed_when_nothing_is_started(lane: Lane) -> None:
    missing = replace(lane.facts, credentials=(Credential(lane.outside / "missing", PurePosixPath("key")),))
    ours_in, theirs_in = os.pipe()
    theirs_out, ours_out = os.pipe()
    with pytest.raises(Refused, match="credential-unreadable"):
        bound_lane(
            ("/bin/true",), lane_grant(missing), deadline=Deadline.after(60),
            limits=read_plan(lane.folder).campaign.limits, stdin=ours_in, stdout=ours_out,
        )  # fmt: skip
    assert os.read(theirs_out, 1) == b""
    with pytest.raises(BrokenPipeError):
        os.write(theirs_in, b"x")
    os.close(theirs_in)
    os.close(theirs_out)


def test_a_driver_may_write_a_file_that_its_agent_cannot_change(lane: Lane) -> None:
    facts = replace(lane.facts, files=(HomeFile(b"setting", PurePosixPath(".tool/config")),))
    script = "cat ~/.tool/config; echo x > ~/.tool/config || rm -f ~/.tool/config || echo kept"
    done = lane.run("/bin/sh", "-c", script, facts=facts)
    assert (done.stdout_tail or "").startswith("setting")
    assert (done.stdout_tail or "").endswith("kept\n"), done
    with pytest.raises(Refused, match="credential-place"):
        lane_grant(replace(facts, files=(HomeFile(b"", PurePosixPath("../x")),)))


@pytest.fixture
def provider() -> Iterator[int]:
    """Stand for a provider on the host's loopback, and return its port."""

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a completion")

    with served(Handler) as port:
        yield port


def test_c14_an_agent_reaches_its_provider_where_the_plan_names_it(lane: Lane, provider: int) -> None:
    fetch = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], b'{}', timeout=20).read())"
    url = f"http://127.0.0.1:{provider}/v1/messages"
    network = Network.proxy([f"127.0.0.1:{provider}"])
    with_proxy = lane.run(PYTHON, "-c", fetch, url, facts=replace(lane.facts, network=network))
    without = lane.run(PYTHON, "-c", fetch, url)
    by_name = lane.run(PYTHON, "-c", fetch, url, facts=replace(lane.facts, network=Network.host()))

    assert with_proxy.stdout_tail == by_name.stdout_tail == "b'a completion'\n", with_proxy
    assert [(row.port, row.outcome) for row in with_proxy.destinations] == [(provider, "allowed")]
    assert "Connection refused" in without.stderr_tail
    networks = [done.boundary.network for done in (with_proxy, without, by_name)]
    assert networks == ["proxy", "none", "host"]


def test_git_may_be_writable_where_the_plan_says_so(lane: Lane) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log -1 --format=%s"
    refused = lane.run("/bin/sh", "-c", commit)
    allowed = lane.run("/bin/sh", "-c", commit, facts=replace(lane.facts, git_read_only=False))

    assert "Read-only file system" in refused.stderr_tail
    assert refused.exit_code != 0
    assert allowed.stdout_tail == "x\n", allowed


@pytest.fixture
def plain(tmp_path: Path) -> LaneFacts:
    """Facts about folders that nobody has to launch anything for."""
    root = tmp_path.resolve()
    for name in ("round/store", "round/lanes/L1", "round/lanes/L2", "program/.git"):
        (root / name).mkdir(parents=True)
    (root / "link").symlink_to(root / "round/store")
    clone = root / "round/lanes/L1"
    return LaneFacts(clone=clone, home=root / "home", hidden=(root / "round", root / "program"))


@pytest.mark.parametrize(
    "name", ["round", "round/store", "round/lanes", "round/lanes/L2", ".", "program/.git", "link"]
)
def test_what_is_hidden_is_never_granted_by_whatever_name(plain: LaneFacts, name: str) -> None:
    place = plain.home.parent / name
    with pytest.raises(Refused, match="lane-grant"):
        lane_grant(replace(plain, readable=(Mount(place, Path("/place")),)))
    with pytest.raises(Refused, match="lane-grant"):
        lane_grant(replace(plain, credentials=(Credential(place, PurePosixPath("key")),)))


@pytest.mark.parametrize("at", ["/etc/key", "../key", "a/../../key", "."])
def test_a_credential_lies_in_the_home(plain: LaneFacts, at: str) -> None:
    with pytest.raises(Refused, match="credential-place"):
        lane_grant(replace(plain, credentials=(Credential(Path("/etc/hosts"), PurePosixPath(at)),)))


def test_a_grant_holds_no_place_but_the_lanes_own(plain: LaneFacts) -> None:
    grant = lane_grant(plain)
    clone = plain.clone

    assert [(mount.source, mount.at) for mount in grant.writable] == [(clone, clone), (plain.home, HOME)]
    names = (".roundkit/lane.json", ".roundkit/round", ".roundkit/status", ".git")
    assert [mount.source for mount in grant.readable] == [clone / name for name in names]
    assert grant.network == Network.none()


def test_a_credential_that_is_no_file_starts_nothing(lane: Lane) -> None:
    for source in (lane.outside / "missing", lane.outside, Path("/dev/zero")):
        facts = replace(lane.facts, credentials=(Credential(source, PurePosixPath("key")),))
        with pytest.raises(Refused, match="credential-unreadable"):
            lane.run("/bin/touch", "ran", facts=facts)
    assert not (lane.folder.clone("L1") / "ran").exists()


def test_a_link_that_an_earlier_attempt_left_in_place_of_a_grant_is_refused(lane: Lane) -> None:
    before = tree_digest(lane.folder.store, skip=EVERYTHING)
    clone = lane.folder.clone("L1")
    for name in (".git", ".roundkit/status", ".roundkit"):
        place = clone / name
        place.rename(clone / "moved")
        place.symlink_to(lane.folder.store)
        with pytest.raises(Refused, match="mount-source"):
            lane.run("/bin/touch", "ran")
        place.unlink()
        (clone / "moved").rename(place)

    assert tree_digest(lane.folder.store, skip=EVERYTHING) == before
    assert not (clone / "ran").exists()


def test_a_link_in_the_home_where_a_credential_belongs_is_refused(lane: Lane) -> None:
    facts = replace(lane.facts, home=lane.folder.root / "homes" / "linked")
    lane.run("/bin/sh", "-c", "ln -s /usr ~/.tool", facts=replace(facts, credentials=()))
    with pytest.raises(Refused, match="mount-point"):
        lane.run("/bin/touch", "ran", facts=facts)

    assert not (lane.folder.clone("L1") / "ran").exists()
    assert not (lane.folder.root / "homes" / "linked.credentials").exists()
