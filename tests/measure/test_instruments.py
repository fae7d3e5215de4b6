"""Instructions and peak memory of real trials, and what a candidate tries against the count."""

from __future__ import annotations

import textwrap

import pytest
from measure.counting import bare, counted_spec, counted_total, looping
from measure.worlds import PAIR, SINGLE, World
from support.tools import needs_valgrind

from roundkit.measure.broke import MeasurementBroke

pytestmark = needs_valgrind


@pytest.fixture(params=["pair", "single"])
def counted(world: World, request: pytest.FixtureRequest) -> World:
    """A world whose instructions are counted, with the benchmark in either shape."""
    world.spec = counted_spec(PAIR if request.param == "pair" else SINGLE)
    return world


def test_m13_the_count_is_of_the_candidates_process_and_stands_raw_in_the_record(counted: World) -> None:
    trial = counted.trial({})
    small = counted_total(trial)
    assert trial.counted is not None
    assert trial.counted.version.startswith("Valgrind-3.")
    assert len(trial.counted.processes) == 1
    assert counted.spec.forgeable
    more = counted_total(counted.trial({"prog/core.py": looping(20_000)}))
    assert more > small + 20_000 * 10


@pytest.mark.slow
def test_m13_work_in_children_is_counted(world: World) -> None:
    bare(world)
    heavy = "total = 0\nfor n in range(100_000): total += n\n"
    own = counted_total(
        world.trial({"prog/core.py": f"def work(payload):\n    exec({heavy!r})\n    return 0\n"})
    )
    for start in (
        "    import subprocess\n"
        f"    subprocess.run(['/usr/bin/python3', '-S', '-c', {heavy!r}], check=True)\n",
        "    import os\n    pid = os.fork()\n    if not pid:\n"
        f"        exec({heavy!r})\n        os._exit(0)\n    os.waitpid(pid, 0)\n",
    ):
        trial = world.trial({"prog/core.py": f"def work(payload):\n{start}    return 0\n"})
        assert counted_total(trial) > own
        assert trial.counted is not None
        assert len(trial.counted.processes) == 2


FAKE_LOG = """
def fake_log(pid):
    lines = open(f"/round/count/{pid}.log").read().splitlines()[:6]
    return "\\n".join([*lines, f"=={pid}== ", f"=={pid}== I   refs:      1,000"]) + "\\n"
"""
ATTACKS = {
    "writes a summary to every open descriptor": """
        me = os.getpid()
        line = f"=={me}== \\n=={me}== I   refs:      1,000\\n".encode()
        for fd in range(3, 4096):
            try: os.write(fd, line)
            except OSError: pass
    """,
    "reopens the log through proc": """
        me = os.getpid()
        for name in os.listdir("/proc/self/fd"):
            try:
                if "/round/count" in os.readlink("/proc/self/fd/" + name):
                    with open("/proc/self/fd/" + name, "w") as stream: stream.write(fake_log(me))
            except OSError: pass
        with open(f"/round/count/{me}.log", "a"): pass
    """,
    "appends to its log": """
        me = os.getpid()
        with open(f"/round/count/{me}.log", "a") as stream: stream.write(f"=={me}== I   refs:      1,000\\n")
    """,
    "truncates its log": """
        os.truncate(f"/round/count/{os.getpid()}.log", 0)
    """,
    "leaves a count file that valgrind cannot replace": """
        path = f"/round/count/{os.getpid()}.out"
        with open(path, "w") as stream: stream.write("events: Ir\\nsummary: 1000\\n")
        os.chmod(path, 0o444)
    """,
    "makes the count file first": """
        with open(f"/round/count/{os.getpid()}.out", "w") as stream: stream.write("summary: 1000\\n")
    """,
    "links the count file elsewhere": """
        os.symlink("/dev/null", f"/round/count/{os.getpid()}.out")
    """,
    "deletes its log": """
        os.unlink(f"/round/count/{os.getpid()}.log")
    """,
    "replaces its log by another file": """
        me = os.getpid()
        with open(f"/round/count/{me}1.log", "w") as stream: stream.write(fake_log(me))
        os.rename(f"/round/count/{me}1.log", f"/round/count/{me}.log")
    """,
    "gives the log away over a socket and writes through it": """
        import array, socket
        me = os.getpid()
        ours, theirs = socket.socketpair()
        for fd in range(3, 4096):
            try: ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
            except OSError: continue
            _, given, _, _ = theirs.recvmsg(1, 64)
            try:
                copy = array.array("i", given[0][2][:4])[0]
                if "/round/count" in os.readlink(f"/proc/self/fd/{copy}"):
                    os.write(copy, f"=={me}== I   refs:      1,000\\n".encode())
                os.close(copy)
            except (IndexError, OSError): pass
    """,
    "limits the size of files to nothing": """
        import resource, signal
        import atexit
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        atexit.register(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    """,
    "starts a child that is killed before its count": """
        import signal
        theirs, ours = os.pipe()
        child = os.fork()
        if not child:
            os.write(ours, b"x")
            while True: time.sleep(1)
        os.read(theirs, 1)  # until there is something to count
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    """,
    "kills itself in a child": """
        import signal
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    """,
    "leaves a child behind": """
        child = os.fork()
        if not child:
            os.setsid()
            while True: time.sleep(1)
    """,
    "has a finished child's count overwritten": """
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        with open(f"/round/count/{child}.out", "w") as stream: stream.write("events: Ir\\nsummary: 1000\\n")
        with open(f"/round/count/{child}.log", "w") as stream: stream.write(fake_log(child))
    """,
    "has a detached child write into the main count file": """
        me = os.getpid()
        if not os.fork():
            os.setsid()
            path = f"/round/count/{me}.out"
            while not os.path.exists(path): pass
            with open(path, "w") as stream: stream.write("events: Ir\\nsummary: 1000\\n")
            os._exit(0)
    """,
    "executes another program in its place": """
        os.execv("/usr/bin/python3", ["/usr/bin/python3", "-c", "pass"])
    """,
    "names counts of processes that never were": """
        me = 3
        with open("/round/count/3.log", "w") as stream: stream.write(fake_log(os.getpid()))
        with open("/round/count/3.out", "w") as stream: stream.write("events: Ir\\nsummary: 1000\\n")
    """,
    "leaves something else among the counts": """
        with open("/round/count/2.log.1", "w"): pass
    """,
}
HARMLESS = ("kills itself in a child",)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_m13_fault_08_a_count_that_the_candidate_wrote_is_not_believed(world: World, attack: str) -> None:
    """Whatever an attack does, either the trial is the candidate's failure, or the count is the true one."""
    bare(world)
    code = f"import os, time\n{FAKE_LOG}\n{textwrap.dedent(ATTACKS[attack])}\n"
    honest = "def work(payload):\n    return sum(range(payload['n']))\n"
    trial = world.trial({"prog/core.py": code + honest})
    if attack in HARMLESS:
        assert counted_total(trial) > 10_000_000
    else:
        assert trial.problem == "candidate-count", trial.detail
        assert trial.value is None


@pytest.mark.slow
def test_m13_options_left_in_the_checkout_or_the_environment_change_nothing(world: World) -> None:
    bare(world)
    options = "--trace-children=no\n--trace-children-skip=*\n--child-silent-after-fork=yes\n"
    heavy = "for n in range(50_000): pass"
    child = (
        "import os, subprocess\n"
        "os.environ['VALGRIND_OPTS'] = '--trace-children=no --log-file=/dev/null'\n"
        "os.environ['VALGRIND_LIB'] = '/nowhere'\n"
        f"def work(payload):\n    subprocess.run(['/usr/bin/python3', '-S', '-c', {heavy!r}], check=True)\n"
    )
    trial = world.trial({"prog/core.py": child, ".valgrindrc": options})
    assert counted_total(trial)
    assert trial.counted is not None
    assert len(trial.counted.processes) == 2


def test_m13_a_count_that_nothing_gives_breaks_the_measurement(world: World) -> None:
    world.spec = counted_spec().model_copy(update={"counting_tool": None})
    with pytest.raises(MeasurementBroke, match="instrument-missing"):
        world.trial({})
