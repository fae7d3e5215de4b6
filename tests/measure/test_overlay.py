"""C11: a layer over a shared base and a plain checkout give the same verdict inputs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from measure.worlds import HIDDEN, PROGRAM, PROTECTED, PYTHON, World, write_tree

from roundkit.core.files import tree_digest
from roundkit.core.globs import GlobSet
from roundkit.host.confine.overlay import OPAQUE
from roundkit.host.confine.types import CHANGED
from roundkit.measure.checkout import materialize
from roundkit.measure.experiment import run_experiment
from roundkit.measure.layers import merged_digest
from roundkit.measure.materialized import Base, Checkout, lay_checkout, overlay_missing
from roundkit.measure.probe import run_command_confined
from roundkit.measure.protect import plan_protection
from roundkit.measure.trees import remove_tree
from roundkit.models.campaign import CampaignPlan, Command
from roundkit.models.measurement import SideRef
from roundkit.models.round_plan import DeviceSet
from roundkit.rounds.building import build_checkout

GIT = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "core.autocrlf=false"]
BEFORE = {
    **PROGRAM,
    "gone.py": "gone\n",
    "gone/all/of.py": "it\n",
    "gone/all/too.py": "it\n",
    "partly/gone.py": "gone\n",
    "partly/kept.py": "kept\n",
    "old-name.py": "a file that is renamed\n" * 20,
    "becomes-executable.sh": "#!/bin/sh\n",
    "file-to-folder": "a file\n",
    "folder-to-file/a": "a\n",
    "folder-to-file/b/c": "c\n",
    "folder-to-link/a": "a\n",
    "link-to-file": "",
    "hidden/kept.txt": "secret\n",
    "bench/hidden/gone.json": "secret\n",
    "tool/__init__.py": "",
    "prog/__pycache__/core.cpython-311.pyc": "planted\n",
}
BUILD = """\
import os, shutil
open("kept-by-build.o", "w").write("object")
open("partly/kept.py", "a").write("more")
os.chmod("prog/core.py", 0o755)
os.remove("becomes-executable.sh")
shutil.rmtree("tool")
os.mkdir("tool")
open("tool/other.py", "w").write("x")
shutil.rmtree("file-to-folder")
open("file-to-folder", "w").write("a file again")
os.remove("folder-to-file")
os.makedirs("folder-to-file/d")
open("folder-to-file/d/e", "w").write("e")
os.symlink("prog/core.py", "made-link")
os.rename("new-name.py", "third-name.py")
"""


def change(work: Path) -> None:
    """Do to a tree what candidates may do: delete, rename, change modes and kinds."""
    for name in ("gone.py", "gone/all/of.py", "gone/all/too.py", "partly/gone.py", "file-to-folder"):
        (work / name).unlink()
    for name in ("folder-to-file/a", "folder-to-file/b/c", "folder-to-link/a", "link-to-file"):
        (work / name).unlink()
    (work / "folder-to-file" / "b").rmdir()
    for name in ("folder-to-file", "folder-to-link"):
        (work / name).rmdir()
    (work / "folder-to-file").write_text("now a file\n")
    (work / "folder-to-link").symlink_to("prog")
    (work / "link-to-file").symlink_to("partly/kept.py")
    (work / "file-to-folder").mkdir()
    (work / "file-to-folder" / "inside").write_text("now a folder\n")
    (work / "old-name.py").rename(work / "new-name.py")
    (work / "becomes-executable.sh").chmod(0o755)
    (work / "prog" / "core.py").write_text("def work(payload):\n    return sum(range(payload['n'])) + 0\n")


@pytest.fixture
def commits(tmp_path: Path) -> tuple[Path, str, str]:
    """A repository, its incumbent and a candidate that changes everything that can be changed."""
    work = write_tree(tmp_path / "work", BEFORE)
    ids = []
    subprocess.run([*GIT, "init", "-q", work], check=True)
    for step in (lambda: None, lambda: change(work)):
        step()
        subprocess.run([*GIT, "-C", work, "add", "-A", "-f"], check=True)
        subprocess.run([*GIT, "-C", work, "commit", "-q", "-m", "m"], check=True)
        done = subprocess.run([*GIT, "-C", work, "rev-parse", "HEAD"], check=True, capture_output=True)
        ids.append(done.stdout.decode().strip())
    return work, ids[0], ids[1]


@pytest.fixture
def both(place: Path, commits: tuple[Path, str, str]) -> Iterator[Callable[[str], tuple[Checkout, Checkout]]]:
    """Lay a commit on the disk in both ways."""
    repository, incumbent, candidate = commits
    hidden = GlobSet(HIDDEN)
    assert overlay_missing(place) is None, "this machine shows no tree put together of layers"
    materialize(repository, incumbent, place / "base", omit=hidden)
    base = Base(place / "base", incumbent)

    def lay(name: str) -> tuple[Checkout, Checkout]:
        commit = {"incumbent": incumbent, "candidate": candidate}[name]
        plain = lay_checkout(repository, commit, place / f"{name}-plain", base=None, omit=hidden)
        layered = lay_checkout(repository, commit, place / f"{name}-layered", base=base, omit=hidden)
        return plain, layered

    yield lay
    assert tree_digest(place / "base") == tree_digest_of(repository, incumbent, place / "base-again")


def tree_digest_of(repository: Path, commit: str, target: Path) -> str:
    materialize(repository, commit, target, omit=GlobSet(HIDDEN))
    return tree_digest(target)


def listing(world: World, checkout: Checkout, *, scratch: str) -> str:
    """Return what a confined command sees of a checkout: every path, kind, mode and content."""
    script = (
        "import os, hashlib\n"
        "for top, folders, names in sorted(os.walk('.')):\n"
        "    folders.sort()\n"
        "    for name in sorted(folders + names):\n"
        "        path = os.path.join(top, name)\n"
        "        state = os.lstat(path)\n"
        "        if os.path.islink(path): what = os.readlink(path)\n"
        "        elif os.path.isdir(path): what = ''\n"
        "        else: what = hashlib.sha256(open(path, 'rb').read()).hexdigest()\n"
        "        print(path, oct(state.st_mode), what)\n"
    )
    return command(world, checkout, script, scratch=scratch)


def command(world: World, checkout: Checkout, script: str, *, scratch: str) -> str:
    log = run_command_confined(
        "build",
        Command(argv=(PYTHON, "-s", "-c", script), timeout_s=30),
        world.spec,
        checkout=checkout,
        incumbent_built=world.incumbent,
        scratch=world.root / scratch,
    )
    assert (log.end_reason, log.exit_code) == ("exited", 0), log.tail
    return log.tail


def test_c11_both_kinds_have_the_digest_of_the_commit(both: Callable[..., tuple[Checkout, Checkout]]) -> None:
    for name in ("incumbent", "candidate"):
        plain, layered = both(name)
        assert (plain.kind, layered.kind) == ("plain", "overlay")
        assert plain.digest() == layered.digest()
    changed = {path.name for path in (layered.folder / CHANGED).iterdir()}
    assert "bench" not in changed, "a layer holds what was changed and nothing else"


def test_c11_commands_see_the_same_and_leave_the_same(
    world: World, both: Callable[..., tuple[Checkout, Checkout]]
) -> None:
    plain, layered = both("candidate")
    assert listing(world, plain, scratch="a") == listing(world, layered, scratch="b")
    for checkout in (plain, layered):
        command(world, checkout, BUILD, scratch="c")
    assert plain.digest() == layered.digest()
    # A second command finds what the first one left, whatever user it runs as.
    for checkout in (plain, layered):
        command(world, checkout, "open('kept-by-build.o', 'a').write('twice')", scratch="d")
    assert plain.digest() == layered.digest()
    assert listing(world, plain, scratch="a") == listing(world, layered, scratch="b")


def test_c11_a_trials_copies_hold_the_same(
    world: World, both: Callable[..., tuple[Checkout, Checkout]]
) -> None:
    plain, layered = both("candidate")
    for checkout in (plain, layered):
        command(world, checkout, BUILD + "os.mkdir('.git')\nopen('.git/made', 'w')\n", scratch="c")
    assert layered.base is not None
    protected = GlobSet((*PROTECTED, "prog/core.py", "hidden/**"))
    plan = plan_protection(
        world.incumbent, protected, GlobSet((*HIDDEN, "partly/kept.py")), base=layered.base
    )
    copies = [plan.copy_side(checkout, world.root / f"copy-{checkout.kind}") for checkout in (plain, layered)]
    assert copies[0].digest() == copies[1].digest()
    assert "partly/kept.py" not in names(copies[0].folder)
    for files in (copies[0].folder, copies[1].folder / CHANGED):
        assert not (files / ".git").exists()
    assert "prog/__pycache__/core.cpython-311.pyc" not in names(copies[0].folder)


def test_fault_06_c11_a_link_in_place_of_bytecode_is_left_out_of_both_kinds(
    world: World, both: Callable[..., tuple[Checkout, Checkout]]
) -> None:
    plain, layered = both("candidate")
    link = "import os, shutil; shutil.rmtree('prog/__pycache__'); os.symlink('../partly', 'prog/__pycache__')"
    for checkout in (plain, layered):
        command(world, checkout, link, scratch="c")
    protected = GlobSet((*PROTECTED, "prog/core.py"))
    plan = plan_protection(world.incumbent, protected, GlobSet(HIDDEN), base=layered.base)
    copies = [plan.copy_side(checkout, world.root / f"copy-{checkout.kind}") for checkout in (plain, layered)]
    assert copies[0].digest() == copies[1].digest()
    assert "prog/__pycache__" not in names(copies[0].folder)


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_c11_an_experiment_on_layers_measures_and_says_so(
    world: World,
    both: Callable[..., tuple[Checkout, Checkout]],
    fixture_devices: Callable[..., DeviceSet],
    lease_root: Path,
) -> None:
    records = []
    pairs = {name: both(name) for name in ("incumbent", "candidate")}
    for kind in (0, 1):
        sides = {name: side_ref(checkouts[kind]) for name, checkouts in pairs.items()}
        request = world.request(world.incumbent, (fixture_devices(f"d{kind}"),), pairs=2, name=f"e.{kind}")
        request = request.model_copy(update={"baseline": sides["incumbent"], "candidate": sides["candidate"]})
        records.append(run_experiment(request, lease_root=lease_root))
    plain, layered = records
    assert [record.outcome for record in records] == ["complete", "complete"], [r.detail for r in records]
    assert (plain.candidate.checkout, layered.candidate.checkout) == ("plain", "overlay")
    for side in ("baseline", "candidate"):
        digests = {getattr(record, side).files_sha256_before for record in records}
        assert len(digests) == 1
    sources = {mount.source for boundary in layered.boundaries.values() for mount in boundary.mounts}
    assert "{base}" in sources
    assert not [source for source in sources if source and source.startswith(str(world.root))]


def side_ref(checkout: Checkout) -> SideRef:
    return SideRef(
        commit="1" * 40,
        tree="2" * 40,
        built=str(checkout.folder),
        base=None if checkout.base is None else str(checkout.base),
        built_sha256=checkout.digest(),
    )


def test_sides_of_two_kinds_are_not_compared(
    world: World,
    both: Callable[..., tuple[Checkout, Checkout]],
    fixture_devices: Callable[..., DeviceSet],
    lease_root: Path,
) -> None:
    plain, layered = both("incumbent")
    request = world.request(world.incumbent, (fixture_devices("d"),), pairs=2)
    request = request.model_copy(update={"baseline": side_ref(plain), "candidate": side_ref(layered)})
    record = run_experiment(request, lease_root=lease_root)
    assert (record.outcome, record.reason) == ("infrastructure", "checkout-kinds")


def test_c07_a_build_that_leaves_a_path_too_long_to_be_copied_is_rejected(
    both: Callable[..., tuple[Checkout, Checkout]], world: World
) -> None:
    """The folders above the copies that trials see are longer: copying would fail, as the host's fault."""
    leave = f"import os\nos.makedirs({'/'.join(['d' * 203] * 5)!r} + '/eeeee')\n"
    campaign = CampaignPlan.model_construct(
        build=Command(argv=(PYTHON, "-s", "-c", leave), timeout_s=30), target_package=None, smoke=None
    )
    for checkout in both("candidate"):
        root = checkout.folder if checkout.base is None else checkout.folder / CHANGED
        root.joinpath(*["d" * 203] * 5, "e" * 4).mkdir(parents=True)
        assert checkout.overlong_path() is None
        remove_tree(root / ("d" * 203))
        built = build_checkout(
            campaign, world.spec, commit="1" * 40, tree="2" * 40, checkout=checkout,
            pristine=world.incumbent, provision=None,
        )  # fmt: skip
        assert (built.side, built.cause) == (None, "build")
        assert "of 1025 bytes, more than 1024" in str(built.detail)


@pytest.mark.parametrize(
    ("mark", "value"), [("user.overlay.redirect", b"/etc"), ("user.overlay.metacopy", b""), (OPAQUE, b"x")]
)
def test_a_layer_with_an_unknown_mark_is_not_read(place: Path, mark: str, value: bytes) -> None:
    layer: Mapping[str, str] = {"folder/file": "x"}
    write_tree(place / "layer", layer)
    (place / "base").mkdir()
    os.setxattr(place / "layer" / "folder", mark, value)
    with pytest.raises(OSError, match="mark"):
        merged_digest(place / "base", place / "layer")
