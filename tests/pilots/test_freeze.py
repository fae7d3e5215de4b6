"""Freezing a paired pilot: all is bound, nothing that moves is taken, and no program of the host."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.pilots import example, small

from roundkit.core.errors import Refused
from roundkit.evidence.pilot_inputs import bound_inputs
from roundkit.pilots.archive import whole_tree
from roundkit.pilots.folder import read_plan
from roundkit.pilots.inputs import Input, check_inputs, input_problem
from roundkit.rules.pilot_order import schedule_digest


def codes(refused: pytest.ExceptionInfo[Refused]) -> set[str]:
    return {row.code for row in refused.value.refusals}


@pytest.mark.parametrize(("tasks", "variants", "repetitions"), [(3, 2, 3), (2, 2, 1), (4, 3, 2)])
def test_p01_a_frozen_plan_holds_every_tuple_and_the_same_seed_the_same_schedule(
    tmp_path: Path, tasks: int, variants: int, repetitions: int
) -> None:
    files = example(tmp_path)

    def shape(content: Any) -> None:
        content["tasks"] = [*content["tasks"], {**content["tasks"][0], "id": "fourth"}][:tasks]
        content["variants"] = [*content["variants"], {"id": "third"}][:variants]
        content["repetitions"] = repetitions

    files.edit(shape)
    folder, plan = files.freeze("one")
    assert (
        len({slot.tuple_id for slot in plan.schedule}) == tasks * variants * repetitions == len(plan.schedule)
    )
    assert plan.schedule_sha256 == schedule_digest(plan.schedule) == files.freeze("other")[1].schedule_sha256
    (files.root / "tasks" / "rename" / "prompt.md").write_text("# Another task\n")
    assert files.freeze("third")[1].schedule_sha256 == plan.schedule_sha256
    files.edit(lambda content: content.update(seed=2))
    assert files.freeze("fourth")[1].schedule_sha256 != plan.schedule_sha256
    assert read_plan(folder) == plan


def test_the_plan_binds_every_input_and_a_change_of_any_is_named(tmp_path: Path) -> None:
    folder, plan = example(tmp_path).freeze()
    bound = [each.name for each in bound_inputs(plan)]
    found = {
        path.relative_to(folder.root).as_posix()
        for path in (folder.root / "inputs").rglob("*")
        if path.is_file()
    }
    assert all(any(path == at or path.startswith(f"{at}/") for at in bound) for path in found)
    assert len(bound) == 3 * 3 + 3 + 1 + 1 + 1 + 1
    check_inputs(folder, plan)
    for at in bound:
        path = folder.root / at
        file = path if path.is_file() else next(each for each in sorted(path.rglob("*")) if each.is_file())
        before = file.read_bytes()
        file.write_bytes(before + b"#")
        with pytest.raises(Refused, match=at) as refused:
            check_inputs(folder, plan)
        assert codes(refused) == {"input-changed"}
        file.write_bytes(before)
    check_inputs(folder, plan)


def test_the_plan_says_what_ran_where_and_no_host_name(tmp_path: Path) -> None:
    _, plan = example(tmp_path).freeze()
    assert plan.runner.python == ".".join(map(str, sys.version_info[:3]))
    assert os.uname().nodename not in plan.runner.machine
    assert plan.model.agent.executable == plan.runtime.python
    assert plan.repository_revision is None


def test_p14_a_tool_path_of_the_host_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    interpreter = tmp_path / "bin" / "python3"
    interpreter.parent.mkdir()
    interpreter.symlink_to(sys.executable)
    before = hashlib.sha256(Path(sys.executable).read_bytes()).digest(), Path(sys.executable).resolve().stat()
    for program in (
        sys.executable,
        str(interpreter),
        "../bin/python3",
        "{files}/../../bin/python3",
        "bin/python3",
    ):
        files = small(tmp_path / hashlib.sha256(program.encode()).hexdigest()[:8])
        files.edit(lambda content, program=program: content["tools"][1].update(argv=[program]))
        with pytest.raises(Refused) as refused:
            files.freeze()
        assert codes(refused) == {"program-outside"}
        assert [path.name for path in files.root.parent.iterdir()] == ["files"]
    after = hashlib.sha256(Path(sys.executable).read_bytes()).digest(), Path(sys.executable).resolve().stat()
    assert (before[0], before[1].st_ino, before[1].st_mtime_ns) == (
        after[0],
        after[1].st_ino,
        after[1].st_mtime_ns,
    )
    assert [path.name for path in interpreter.parent.iterdir()] == ["python3"]
    assert interpreter.is_symlink()


def test_p14_a_check_of_the_host_is_refused_too(tmp_path: Path) -> None:
    files = small(tmp_path)
    files.edit(lambda content: content["tasks"][0]["checks"][0].update(argv=[sys.executable, "-c", "pass"]))
    with pytest.raises(Refused) as refused:
        files.freeze()
    assert codes(refused) == {"program-outside"}


def test_something_that_holds_an_input_open_for_writing_is_named(tmp_path: Path) -> None:
    files = small(tmp_path)
    place = files.root / "tasks" / "off-by-one" / "fixture" / "pages.py"
    hold = "import sys; held = open(sys.argv[1], 'a'); print('held', flush=True); sys.stdin.read()"
    writer = [sys.executable, "-c", hold, place]
    with subprocess.Popen(writer, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(Refused, match=f"process {process.pid}") as refused:
            files.freeze()
        assert codes(refused) == {"fixture-changing"}
        assert not (tmp_path / "pilot").exists()
        process.communicate()
    files.freeze()


@contextmanager
def changing(fixture: Path) -> Iterator[None]:
    """Write files of a fixture anew, again and again, each under another name first."""
    for number in range(300):
        (fixture / f"more{number}").write_bytes(b"x" * 1000)
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            (fixture / "new").write_bytes(b"%d" % number)
            (fixture / "new").replace(fixture / f"more{number % 300}")
            number += 1

    changer = threading.Thread(target=change)
    changer.start()
    try:
        yield
    finally:
        over.set()
        changer.join()


def test_a_fixture_that_changes_while_it_is_looked_at_is_called_changing(tmp_path: Path) -> None:
    fixture = tmp_path / "fixture"
    fixture.mkdir()
    named = Input(fixture, "inputs/fixture", True, ("tasks", 0, "fixture"))
    with changing(fixture):
        problem = None
        while problem is None:  # until a file is listed and then gone
            problem = input_problem(named, "pilot.yaml")
    assert problem.code == "fixture-changing"


def test_a_fixture_that_changes_while_it_is_copied_is_refused(tmp_path: Path) -> None:
    files = small(tmp_path)
    fixture = files.root / "tasks" / "off-by-one" / "fixture"
    with changing(fixture), pytest.raises(Refused) as refused:
        files.freeze()
    assert codes(refused) == {"fixture-changing"}
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_a_folder_that_is_not_empty_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    files = small(tmp_path)
    (tmp_path / "pilot").mkdir()
    (tmp_path / "pilot" / "mine").write_text("mine")
    with pytest.raises(Refused) as refused:
        files.freeze()
    assert codes(refused) == {"folder-not-empty"}
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refused):
        files.freeze("link")
    assert [path.name for path in (tmp_path / "pilot").iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    assert files.freeze("empty")[1].pilot_id == "three-small-tasks"


def _link(files: Path) -> None:
    (files / "tasks" / "off-by-one" / "fixture" / "link").symlink_to("/etc/hostname")


def _pipe(files: Path) -> None:
    os.mkfifo(files / "tasks" / "off-by-one" / "hidden" / "pipe")


def _latin(files: Path) -> None:
    (files / "tasks" / "off-by-one" / "prompt.md").write_bytes(b"\xe9")


def _gone(files: Path) -> None:
    (files / "guides" / "guided.md").unlink()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [(_link, "input-kind"), (_pipe, "input-kind"), (_latin, "not-text"), (_gone, "input-kind")],
)
def test_an_input_that_cannot_be_frozen_is_named(
    tmp_path: Path, spoil: Callable[[Path], None], code: str
) -> None:
    files = small(tmp_path)
    spoil(files.root)
    with pytest.raises(Refused) as refused:
        files.freeze()
    assert code in codes(refused)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda c: c["tasks"].append(c["tasks"][0]), "name-twice"),
        (lambda c: c["variants"][1].update(id="plain"), "name-twice"),
        (lambda c: c["variants"][1].update(id="a.b"), "name-with-dot"),
        (lambda c: c["variants"][1].update(tools=["nothing"]), "unknown-tool"),
        (lambda c: c["variants"].pop(), "wrong-value"),
        (lambda c: c["tools"][0].update(name="write"), "tool-name"),
        (lambda c: c["tasks"][0].update(id="x" * 60), "name-too-long"),
        (lambda c: c["tasks"][0].update(fixture="../fixture"), "wrong-value"),
        (lambda c: c["tasks"][0].update(fixture="/etc"), "wrong-value"),
        (lambda c: c["model"]["agent"].pop("command"), "command-missing"),
        (lambda c: c["model"]["agent"].update(preset="nothing", command=None), "unknown-preset"),
        (lambda c: c.update(python="/nowhere/python"), "interpreter-missing"),
        (lambda c: c.update(wrong=1), "unknown-key"),
        (lambda c: c.update(seed=-1), "wrong-value"),
        (lambda c: c.update(seed=2**53), "wrong-value"),
        (lambda c: c.update(repetitions=100_000_000), "too-many-tuples"),
        (lambda c: c.update(repetitions=2**53), "wrong-value"),
        (lambda c: c["policy"].update(calls=2**60), "wrong-value"),
        (lambda c: c["policy"].update(trial_s=1e300), "wrong-value"),
    ],
)
def test_a_draft_that_makes_no_sense_is_refused_with_its_place(
    tmp_path: Path, change: Callable[[Any], object], code: str
) -> None:
    files = small(tmp_path)
    files.edit(change)
    with pytest.raises(Refused) as refused:
        files.freeze()
    assert code in codes(refused)
    assert all(row.place for row in refused.value.refusals)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nothing.py", "drift-outside"),
        ("alerts.py/alerts.py", "drift-outside"),
        ("x" * 300, "drift-outside"),
        ("../prompt.md", "wrong-value"),
        ("large.py", "drift-outside"),
        ("same.py", "drift-without-change"),
    ],
)
def test_p07_a_drift_that_no_agent_could_meet_is_refused(tmp_path: Path, path: str, code: str) -> None:
    files = small(tmp_path, task="signature")
    task = files.root / "tasks" / "signature"
    files.edit(lambda content: content["policy"].update(file_bytes=10_000))
    (task / "fixture" / "large.py").write_bytes(b"#" * 10_001)
    drift: Any = {}
    files.edit(lambda content: drift.update(content["tasks"][0]["drift"]))
    (task / "fixture" / "same.py").write_bytes((files.root / drift["patch"]).read_bytes())
    files.edit(lambda content: content["tasks"][0]["drift"].update(path=path))
    with pytest.raises(Refused) as refused:
        files.freeze()
    assert codes(refused) == {code}
    assert [row.place.partition(" ")[0] for row in refused.value.refusals] == ["pilot.yaml:"]
    files.edit(lambda content: content["tasks"][0]["drift"].update(path=drift["path"]))
    files.freeze()


def test_a_copy_is_the_fixture_with_executables_and_without_other_modes(tmp_path: Path) -> None:
    files = small(tmp_path)
    fixture = files.root / "tasks" / "off-by-one" / "fixture"
    (fixture / "pages.py").chmod(0o700)
    folder, plan = files.freeze()
    copy = folder.root / "inputs" / "tasks" / "off-by-one" / "fixture"
    assert whole_tree(copy) == whole_tree(fixture) == plan.tasks[0].fixture_sha256
    assert (copy / "pages.py").stat().st_mode & 0o777 == 0o755
