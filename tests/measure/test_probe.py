"""Build, import probe and smoke of a checkout, confined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from measure.worlds import PROGRAM, SINGLE, World, make_spec, write_tree

from roundkit.core.errors import Refused
from roundkit.host.confine import ConfinementUnavailable
from roundkit.measure.boundary import CHECKOUT
from roundkit.measure.materialized import Checkout
from roundkit.measure.probe import found_places, import_probe, run_command_confined
from roundkit.models.campaign import Command
from roundkit.models.ledger import CommandLog

BUILD = Command(argv=("{python}", "-s", "-P", "build.py"), timeout_s=20)


def build(world: World, files: Mapping[str, str], command: Command = BUILD) -> tuple[Path, CommandLog]:
    checkout = world.candidate(files)
    log = run_command_confined(
        "build",
        command,
        world.spec,
        checkout=Checkout(checkout),
        incumbent_built=world.incumbent,
        scratch=world.root / "scratch",
    )
    assert not (world.root / "scratch").exists()
    return checkout, log


def test_build_leaves_its_output_in_the_checkout(world: World) -> None:
    checkout, log = build(world, {"build.py": "open('prog/made.py', 'w').write('x = 1')\nprint('built')\n"})
    assert log.succeeded, log.tail
    assert log.tail == "built\n"
    assert (checkout / "prog" / "made.py").read_text() == "x = 1"
    assert not (world.incumbent / "prog" / "made.py").exists()


def test_failed_build_says_how_it_ended(world: World) -> None:
    _, log = build(world, {"build.py": "import sys\nprint('no compiler', file=sys.stderr)\nsys.exit(2)\n"})
    assert (log.exit_code, log.end_reason, log.succeeded) == (2, "exited", False)
    assert "no compiler" in log.tail
    command = BUILD.model_copy(update={"timeout_s": 1.0})
    _, log = build(world, {"build.py": "while True: pass\n"}, command)
    assert (log.end_reason, log.succeeded) == ("deadline", False)


def test_c08_build_that_tries_to_change_the_benchmark_leaves_it_as_it_was(world: World) -> None:
    attack = (
        "import os, shutil\n"
        "for attempt in (\n"
        "    lambda: open('bench/driver.py', 'w').write('forged'),\n"
        "    lambda: os.remove('bench/driver.py'),\n"
        "    lambda: os.rename('bench', 'moved'),\n"
        "    lambda: shutil.rmtree('bench'),\n"
        "    lambda: os.symlink('/tmp', 'bench/driver.py'),\n"
        "):\n"
        "    try:\n"
        "        attempt()\n"
        "        print('changed')\n"
        "    except OSError as error:\n"
        "        print('denied', error.strerror)\n"
    )
    before = {name: (world.incumbent / name).read_bytes() for name in PROGRAM}
    checkout, log = build(world, {"build.py": attack})
    assert log.succeeded, log.tail
    assert "changed" not in log.tail
    assert log.tail.count("denied") == 5
    assert {name: (world.incumbent / name).read_bytes() for name in PROGRAM} == before
    assert (checkout / "bench" / "driver.py").read_text() == PROGRAM["bench/driver.py"]


def test_link_where_a_protected_file_belongs_is_the_checkouts_fault(world: World) -> None:
    checkout = write_tree(world.root / "linked", {"build.py": ""})
    (checkout / "bench").symlink_to("/etc")
    log = run_command_confined(
        "build",
        BUILD,
        world.spec,
        checkout=Checkout(checkout),
        incumbent_built=world.incumbent,
        scratch=world.root / "scratch",
    )
    assert (log.end_reason, log.succeeded) == ("refused", False)
    assert "bench" in log.tail


def test_incumbent_is_built_over_its_own_protected_files(world: World) -> None:
    write_tree(world.incumbent, {"build.py": "open('made', 'w').write('x')\n"})
    log = run_command_confined(
        "build",
        BUILD,
        world.spec,
        checkout=Checkout(world.incumbent),
        incumbent_built=world.incumbent,
        scratch=world.root / "scratch",
    )
    assert log.succeeded, log.tail
    assert (world.incumbent / "made").read_text() == "x"
    assert (world.incumbent / "bench" / "hidden" / "answers.json").read_text() == '{"offset": 0}'


def test_fault_12_build_does_not_read_what_lies_outside(world: World) -> None:
    reading = f"import os\nprint([os.path.exists(p) for p in ({str(world.incumbent)!r}, '/root', '/home')])\n"
    _, log = build(world, {"build.py": reading})
    assert log.tail == "[False, False, False]\n"


def test_r18_package_must_resolve_inside_the_checkout(world: World) -> None:
    def probe(package: str, files: Mapping[str, str]) -> CommandLog:
        checkout = world.candidate(files, f"probed-{len(list(world.root.iterdir()))}")
        return import_probe(
            package, world.spec, checkout=Checkout(checkout), timeout_s=20, scratch=world.root / "scratch"
        )

    for spec in (make_spec(), make_spec(SINGLE)):
        world.spec = spec
        log = probe("prog", {})
        assert log.succeeded, log.tail
        assert "/round/checkout/prog" in log.tail
        assert probe("prog.core", {}).succeeded
        assert probe("namespace", {"namespace/part.py": ""}).succeeded
        absent = probe("no_such_package", {})
        assert (absent.exit_code, absent.step) == (1, "import-path")
        assert "no place" in absent.tail
        assert probe("nothing.below", {}).exit_code == 1
        by_path = probe("prog/core.py", {})
        assert found_places(by_path) == (CHECKOUT / "prog" / "core.py",)
        assert probe("prog/no_such_file.py", {}).exit_code == 1
        assert probe("../scratch", {}).exit_code == 1
    # The harness's worker never imports a checkout's module in place of the standard library's.
    world.spec = make_spec()
    shadowed = probe("json", {"json/__init__.py": ""})
    assert shadowed.exit_code == 1
    assert "/usr/lib" in shadowed.tail


def test_hosts_and_plans_faults_are_not_logged_as_the_checkouts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = world.spec
    world.spec = spec.model_copy(
        update={"runtime": spec.runtime.model_copy(update={"readable": ("/no/such/folder",)})}
    )
    with pytest.raises(Refused, match="/no/such/folder"):
        build(world, {"build.py": ""})
    world.spec = spec
    monkeypatch.setenv("ROUNDKIT_BWRAP", "/no/such/bwrap")
    with pytest.raises(ConfinementUnavailable):
        build(world, {"build.py": ""})
