"""C10: candidates attack from their build and their trial, through the whole of serve, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.hostile import ATTACK, STARTUP_FILES, State, mentions, state_of
from support.killing import assert_nothing_runs
from support.program import BENCH
from support.synthetic import CampaignRepo, campaign_repo, knob, reachable_folder, scripted_lane

from roundkit.host.lease import LEASE_ROOT_VARIABLE, holders
from roundkit.models.ledger import TicketRecord
from roundkit.models.trial import ConfinedRun
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve
from roundkit.store import open_store

# Whole rounds, each with many attackers.
pytestmark = pytest.mark.slow

ISOLATED = ["{python}", "-s", "-P"]


@dataclass(frozen=True)
class Attacked:
    """A round in which one honest lane was measured before anybody attacked, and one among the attackers.

    Attributes:
        before: Its state before the attackers came.
        after: Its state when the queue was idle again.
        tickets: The tickets of each lane in the order in which they were submitted.
    """

    folder: RoundFolder
    before: State
    after: State
    tickets: Mapping[str, list[TicketRecord]]

    def ticket(self, lane: str) -> TicketRecord:
        return self.tickets[lane][0]

    def runs(self, lane: str) -> list[ConfinedRun]:
        """Return the candidate's own processes of the lane's experiments."""
        ticket = self.ticket(lane)
        with open_store(self.folder.database, read_only=True) as store:
            records = store.experiments.records(ticket.ticket)
        trials = [trial for record in records for trial in record.trials if trial.planned.side == "candidate"]
        return [trial.executions.get("worker") or trial.executions["benchmark"] for trial in trials]


def verdict(ticket: TicketRecord) -> tuple[str, str]:
    assert ticket.verdict is not None, ticket
    return ticket.verdict.verdict, ticket.verdict.reason


def attacked_round(
    repo: CampaignRepo, root: Path, submissions: Mapping[str, list[Mapping[str, str]]]
) -> Attacked:
    """Have the first lane submit and serve it, then all others, and serve those."""
    (first, first_changes), *others = submissions.items()
    folder, _ = repo.launched(root / "round")
    scripted_lane(folder.clone(first), first_changes[0])
    serve(folder, until="idle", report=lambda _line: None)
    before = state_of(folder, repo.root, [first])
    given: dict[str, list[str]] = {first: []}
    for lane, changes in others:
        aimed = ({name: _aimed(text, folder, repo) for name, text in files.items()} for files in changes)
        given[lane] = [scripted_lane(folder.clone(lane), files)["ticket"] for files in aimed]
    serve(folder, until="idle", report=lambda _line: None)
    assert_nothing_runs(folder)
    assert holders(root / "leases") == []
    with open_store(folder.database) as store:
        tickets = {ticket.ticket: ticket for ticket in store.tickets.all()}
    given[first] = sorted(tickets.keys() - set().union(*given.values()))
    by_lane = {lane: [tickets[name] for name in names] for lane, names in given.items()}
    return Attacked(folder, before, state_of(folder, repo.root, [first]), by_lane)


def _aimed(source: str, folder: RoundFolder, repo: CampaignRepo) -> str:
    """Tell an attack where everything lies on the host."""
    places = [
        *(folder.database, folder.secret_file, folder.plan_file, folder.repository / "HEAD"),
        *(folder.clone("H1") / "README.md", folder.clone("H2") / ".roundkit" / "lane.json"),
        *(folder.checkouts / "pristine" / "bench" / "validate.py", repo.root / ".git" / "HEAD"),
        *(repo.campaign_file, Path("/etc/shadow"), Path("/run/docker.sock")),
    ]
    return source.replace("PLACES_HERE", repr([str(place) for place in places]))


@pytest.fixture(scope="module")
def leases() -> Iterator[Path]:
    """A folder for one round and its leases."""
    with reachable_folder() as root, pytest.MonkeyPatch.context() as patch:
        patch.setenv(LEASE_ROOT_VARIABLE, str(root / "leases"))
        yield root


def assert_others_untouched(attacked: Attacked, newcomers: list[str]) -> None:
    """Check that the ledger grew by the newcomers' own rows, and that nothing else changed."""
    before, after = attacked.before, attacked.after
    assert after.files == before.files
    assert after.rows.keys() == before.rows.keys()
    for table, rows in before.rows.items():
        if table != "sqlite_sequence":
            assert set(rows) <= set(after.rows[table]), table
    assert after.rows["attempts"] == before.rows["attempts"]
    assert after.rows["control"] == before.rows["control"]
    assert after.rows["steps"] == before.rows["steps"]
    own = {
        name
        for lane in newcomers
        for ticket in attacked.tickets[lane]
        for name in (ticket.ticket, ticket.key)
    }
    for table in ("tickets", "commands", "experiments", "events", "rejected_submissions"):
        for row in set(after.rows[table]) - set(before.rows[table]):
            assert any(name in mentions(row) for name in own), (table, mentions(row)[:300])


# Two processes: the driver holds clock, inputs and result; the worker imports every lane's module.

PAIR_BENCH = {
    "bench/driver.py": """\
import sys
from roundkit.harness import driver
sys.path.insert(0, "shared")
from tool import LANES, make_request

def run(session):
    for repetition in range(session.repetitions):
        request = make_request(session.random(repetition))
        with session.timed():
            answers = {lane: session.call(lane, request) for lane in LANES}
        session.save("repetition-%d" % repetition, {"request": request, "answers": answers})

driver(run)
""",
    "bench/worker.py": """\
import sys
from roundkit.harness import worker
sys.path.insert(0, "shared")
from tool import LANES

worker({lane: "prog.%s:answer" % lane for lane in LANES})
""",
    "bench/validate.py": """\
import json, os, pathlib, sys
for path in pathlib.Path(os.environ["ROUNDKIT_OUTPUT_DIR"]).glob("*.json"):
    saved = json.loads(path.read_text())
    for lane, answer in saved["answers"].items():
        if answer != {"sum": sum(range(saved["request"]["n"]))}:
            sys.exit("wrong answer of " + lane)
""",
    "build.py": """\
import glob, subprocess, sys
for path in sorted(glob.glob("steps/*.py")):
    subprocess.run([sys.executable, path], check=True)
""",
    "prog/__init__.py": "",
}
STAGE = (
    "import time\n\n\ndef answer(request):\n    time.sleep({sleep})\n"
    "    return {{'sum': sum(range(request['n']))}}\n"
)
TRIVIAL, HEAVY = STAGE.format(sleep=0.0005), STAGE.format(sleep=0.015)
PAIR_LANES = ("H1", "H2", "builder", "worker", "forker", "cacher")

BUILD_ATTACK = (
    ATTACK
    + f"""
import py_compile, importlib.util, marshal
attack(os.getcwd())
forged = "LANES = []\\ndef make_request(random): return {{'n': 1}}\\n"
code = marshal.dumps(compile(forged, "shared/tool.py", "exec"))
# Never checked against its source: flags 1 says that it holds a hash, without the bit that asks to look.
pyc = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + b"x" * 8 + code
planted = {{
    "shared/__pycache__/tool.%s.pyc" % sys.implementation.cache_tag: pyc,
    "shared/tool.pyc": pyc,
    "shared/tool/__init__.py": forged.encode(),
    "shared/tool.abi3.so": b"no library",
}}
loud = b"import os; os.write(2, b'LOADED'); os._exit(9)\\n"
for top in (".", "shared", "bench"):
    planted.update({{top + "/" + name: loud for name in {STARTUP_FILES!r}}})


def plant(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(content)


through.clear()
for path, content in planted.items():
    attempt(path, lambda: plant(path, content))
print("planted: %d of %d" % (len(through), len(planted)), file=sys.stderr, flush=True)
outlive()
os.environ.update(LD_PRELOAD=os.getcwd() + "/evil.so", PYTHONPATH=os.getcwd(), PYTHONSTARTUP="json.py")
"""
)
WORKER_ATTACK = (
    ATTACK
    + """
import time
attack("/round/scratch")
attempt("result", lambda: write("/round/trial/result.json"))
attempt("result's variable", lambda: os.environ["ROUNDKIT_RESULT_PATH"])
attempt("seed", lambda: os.environ["ROUNDKIT_SEED"])
for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "process_time"):
    setattr(time, name, lambda: 0)
outlive()
print("extra: %s" % through, file=sys.stderr, flush=True)
"""
)
FORK_BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
CACHER = (
    "import time\nkept = []\n\n\ndef answer(request):\n    if not kept:\n"
    "        kept.append({'sum': sum(range(request['n']))})\n    return kept[0]\n"
)


@pytest.fixture(scope="module")
def pair(leases: Path) -> Iterator[Attacked]:
    """H1 and H2 are honest; the others attack."""
    root = leases / "pair"
    root.mkdir()
    make = "def make_request(random):\n    return {'n': 1000 + random.randrange(10**4)}\n"
    # Protected in a folder that is not: what lies beside it is the candidate's.
    tool = f"LANES = {list(PAIR_LANES)!r}\n\n\n{make}"
    files = {**PAIR_BENCH, "shared/tool.py": tool, "shared/other.py": ""}
    for lane in PAIR_LANES:
        files[f"prog/{lane}/__init__.py"] = HEAVY if lane.startswith("H") else TRIVIAL
        files[f"steps/{lane}.py"] = "import os\n"
    repo = campaign_repo(root, PAIR_LANES, files=files)
    repo.edit_campaign(
        lambda plan: plan.update(
            benchmark={
                "driver": [*ISOLATED, "bench/driver.py"],
                "worker": [*ISOLATED, "bench/worker.py"],
                "timeout_s": 10,
                "instrument": "reported",
            },
            validator={"argv": [*ISOLATED, "bench/validate.py"], "timeout_s": 10},
            build={"argv": [*ISOLATED, "build.py"], "timeout_s": 10},
            smoke=None,
            target_package=None,
            environment={"PYTHONPATH": "{harness}", "HOME": "/round/scratch"},
            protected_paths=["bench/**", "shared/tool.py"],
        )
    )
    repo.edit_campaign(lambda plan: plan["limits"].update(pids=40))
    # What sleeps is nearly exact; only a gain that no noise reaches counts here.
    repo.edit_campaign(
        lambda plan: plan["test_plan"].update(min_gain=0.25, loss_margin=0.25, order_margin=0.5)
    )
    _own(repo, lambda lane: [f"prog/{lane}/**", f"steps/{lane}.py"])
    yield attacked_round(
        repo,
        root,
        {
            "H1": [{"prog/H1/__init__.py": TRIVIAL}],
            "builder": [{"steps/builder.py": BUILD_ATTACK}],
            "worker": [{"prog/worker/__init__.py": WORKER_ATTACK + TRIVIAL}],
            "forker": [{"prog/forker/__init__.py": FORK_BOMB}],
            "cacher": [{"prog/cacher/__init__.py": CACHER}],
            "H2": [{"prog/H2/__init__.py": TRIVIAL}],
        },
    )


def _own(repo: CampaignRepo, globs_of) -> None:  # type: ignore[no-untyped-def]
    def edit(draft) -> None:  # type: ignore[no-untyped-def]
        draft["aa_interval"] = 50
        for lane in draft["lanes"]:
            lane["globs"] = globs_of(lane["id"])
            lane["submission_cap"] = 20

    repo.edit_round(edit)


def test_c10_honest_lanes_get_their_verdicts_among_attackers(pair: Attacked) -> None:
    assert verdict(pair.ticket("H1")) == verdict(pair.ticket("H2")) == ("pass", "gain")


def test_c10_attacks_change_nothing_but_their_own_rows(pair: Attacked) -> None:
    assert_others_untouched(pair, [lane for lane in PAIR_LANES if lane != "H1"])


def test_c10_c01_c02_c06_c08_an_attack_from_the_build_reaches_nothing(pair: Attacked) -> None:
    ticket = pair.ticket("builder")
    log = next(log for log in ticket.commands if log.step == "build")

    assert log.exit_code == 0, log
    assert "attacked: 1" in log.tail
    assert "through: []" in log.tail
    # All that belongs beside the protected module and into the top folder; nothing into the judges' own.
    assert f"planted: {4 + 2 * len(STARTUP_FILES)} of {4 + 3 * len(STARTUP_FILES)}" in log.tail
    assert verdict(ticket)[0] == "not-measured", ticket.verdict
    assert not any("LOADED" in run.stderr_tail for run in pair.runs("builder"))


def test_c10_c01_c02_c06_an_attack_from_the_trial_reaches_nothing(pair: Attacked) -> None:
    runs = pair.runs("worker")

    assert len(runs) >= 6
    assert all("attacked: 1" in run.stderr_tail and "through: []" in run.stderr_tail for run in runs)
    assert all("extra: []" in run.stderr_tail for run in runs)
    assert verdict(pair.ticket("worker"))[0] == "not-measured", pair.ticket("worker").verdict


def test_c10_c05_a_fork_bomb_fails_alone(pair: Attacked) -> None:
    result, reason = verdict(pair.ticket("forker"))

    assert result == "fail"
    assert reason.startswith("candidate-")


def test_c10_outputs_cached_between_repetitions_are_wrong_answers(pair: Attacked) -> None:
    assert verdict(pair.ticket("cacher")) == ("fail", "candidate-invalid")


# One process: the candidate is in the process that writes the result, which is labelled forgeable.

_HOOK = """
for name in sorted(os.listdir("attacks")):
    with open(os.path.join("attacks", name)) as stream:
        exec(compile(stream.read(), name, "exec"), {"__name__": name})


main()
"""
SINGLE_BENCH = BENCH.removesuffix("\n\nmain()\n") + _HOOK
HEAD = "import atexit, json, os\nplace = os.environ['ROUNDKIT_RESULT_PATH']\n"
FORGED = '{"metrics": {"latency_ms": [1.0, 1.0]}}'
ANSWER = "open(os.environ['ROUNDKIT_OUTPUT_DIR'] + '/answer.json', 'w').write('{\"answer\": 42}')\n"
RESULTS: dict[str, str] = {
    "early": f"open(place, 'w').write({FORGED!r})\n",
    "late": f"atexit.register(lambda: open(place, 'w').write({FORGED!r}))\n",
    "renamed over": (
        f"def swap():\n    open(place + 'x', 'w').write({FORGED!r})\n    os.rename(place + 'x', place)\n"
        "atexit.register(swap)\n"
    ),
    "link": ANSWER + "os.symlink('/round/checkout/bench/model.json', place)\nos._exit(0)\n",
    "dangling link": "os.symlink('/round/trial/outputs/answer.json', place)\n",
    "fifo": "os.mkfifo(place)\nos._exit(0)\n",
    **{
        name: ANSWER + f"open(place, 'w').write({text!r})\nos._exit(0)\n"
        for name, text in {
            "nan": '{"metrics": {"latency_ms": [NaN, 1.0]}}',
            "infinite": '{"metrics": {"latency_ms": [1e999, 1.0]}}',
            "negative": '{"metrics": {"latency_ms": [-1.0, 1.0]}}',
            "missing": '{"metrics": {}}',
            "twice": '{"metrics": {"latency_ms": [130.0, 130.0], "latency_ms": [1.0, 1.0]}}',
            "text": '{"metrics": {"latency_ms": ["1.0", "1.0"]}}',
        }.items()
    },
}


@pytest.fixture(scope="module")
def single(leases: Path) -> Iterator[Attacked]:
    """H1 and H2 are honest; the third lane submits one forged result after the other."""
    root = leases / "single"
    root.mkdir()
    lanes = ("H1", "H2", "forger")
    files = {"bench/bench.py": SINGLE_BENCH, **{f"attacks/{lane}.py": "" for lane in lanes}}
    repo = campaign_repo(root, lanes, files=files)
    repo.edit_campaign(lambda plan: plan.update(build=None, smoke=None, target_package=None))
    _own(repo, lambda lane: [f"knobs/{lane}.json", f"attacks/{lane}.py"])
    yield attacked_round(
        repo,
        root,
        {
            "H1": [{"knobs/H1.json": knob(0.5)}],
            "forger": [{"attacks/forger.py": HEAD + code} for code in RESULTS.values()],
            "H2": [{"knobs/H2.json": knob(0.4)}],
        },
    )


def test_c10_c07_every_forged_result_fails_with_a_reason(single: Attacked) -> None:
    tickets = single.tickets["forger"]
    told = {name: verdict(ticket) for name, ticket in zip(RESULTS, tickets, strict=True)}

    assert told == dict.fromkeys(RESULTS, ("fail", "candidate-result"))
    assert all(ticket.verdict.forgeable for ticket in tickets if ticket.verdict is not None)


def test_c10_forged_results_change_nothing_but_their_own_rows(single: Attacked) -> None:
    assert_others_untouched(single, ["H2", "forger"])
    assert verdict(single.ticket("H1")) == verdict(single.ticket("H2")) == ("pass", "gain")
