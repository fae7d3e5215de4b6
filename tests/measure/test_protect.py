"""Which mounts lay an incumbent's protected files over a checkout, and what a copy leaves out for them."""

from __future__ import annotations

import py_compile
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from roundkit.core.globs import GlobSet
from roundkit.measure.materialized import Checkout
from roundkit.measure.protect import Protection, copy_matching, plan_protection
from roundkit.measure.trees import list_files

_NOTHING = GlobSet(())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def tree(root: Path, *names: str, content: str = "incumbent") -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def plan(root: Path, *protected: str, hidden: tuple[str, ...] = ()) -> Protection:
    return plan_protection(root, GlobSet(protected), GlobSet(hidden))


@pytest.mark.parametrize(
    ("protected", "hidden", "folders", "files"),
    [
        (("bench/**",), (), ("bench",), ()),
        (("bench/",), (), ("bench",), ()),
        (("bench/**", "bench/sub/**"), (), ("bench",), ()),
        # Only some names are protected: another file in there is the candidate's own.
        (("bench/*.py",), (), (), ("bench/run.py",)),
        (("bench/*",), (), (), ("bench/run.py",)),
        (("bench/sub/**",), (), ("bench/sub",), ()),
        # A folder with hidden files in it is never shown as a whole.
        (("bench/**",), ("bench/sub/**",), (), ("bench/run.py",)),
        (("**/conftest.py",), (), (), ("conftest.py", "pkg/conftest.py")),
        (("**",), (), ("bench", "pkg"), ("conftest.py",)),
        (("nothing/**",), (), (), ()),
    ],
)
def test_fewest_mounts(
    tmp_path: Path,
    protected: tuple[str, ...],
    hidden: tuple[str, ...],
    folders: tuple[str, ...],
    files: tuple[str, ...],
) -> None:
    tree(tmp_path, "bench/run.py", "bench/sub/data.json", "conftest.py", "pkg/conftest.py", "pkg/core.py")
    found = plan(tmp_path, *protected, hidden=hidden)
    assert (found.folders, found.files) == (folders, files)
    assert [str(mount.at) for mount in found.mounts(Path("/in"))] == [f"/in/{p}" for p in (*folders, *files)]


def test_copy_holds_mount_points_instead_of_the_candidates_protected_files(tmp_path: Path) -> None:
    incumbent = tree(tmp_path / "incumbent", "bench/run.py", "deep/er/conftest.py", "pkg/core.py", "h/x")
    built = tree(
        tmp_path / "built", "bench/run.py", "bench/planted.py", "pkg/core.py", "pkg/conftest.py", "h/x"
    )
    (built / "deep").symlink_to("/etc")
    protection = plan(incumbent, "bench/**", "**/conftest.py", hidden=("h/**",))
    protection.copy_side(Checkout(built), tmp_path / "copy")
    assert sorted(list_files(tmp_path / "copy")) == ["deep/er/conftest.py", "pkg/core.py"]
    assert names_in(tmp_path / "copy" / "bench") == []
    assert not (tmp_path / "copy" / "deep").is_symlink()
    assert (tmp_path / "copy" / "deep" / "er" / "conftest.py").read_text() == ""


def test_protected_link_is_the_incumbents(tmp_path: Path) -> None:
    incumbent = tree(tmp_path / "incumbent", "core.py")
    (incumbent / "run.py").symlink_to("core.py")
    built = tree(tmp_path / "built", "core.py")
    (built / "run.py").symlink_to("elsewhere.py")
    protection = plan(incumbent, "run.py")
    assert protection.mounts(Path("/in")) == ()
    protection.copy_side(Checkout(built), tmp_path / "copy")
    assert str((tmp_path / "copy" / "run.py").readlink()) == "core.py"


def test_fault_06_what_python_would_load_in_place_of_a_protected_module_is_left_out(tmp_path: Path) -> None:
    incumbent = tree(tmp_path / "incumbent", "bench.py", "tools/check.py", "tools/check.so", "core.py")
    built = tree(
        tmp_path / "built",
        "bench.py",
        "__pycache__/bench.cpython-311.pyc",
        "__pycache__/core.cpython-311.pyc",
        "bench.cpython-311-x86_64-linux-gnu.so",
        "bench/__init__.py",
        "tools/__pycache__/check.cpython-311.opt-1.pyc",
        "tools/check.so",
        "core.py",
        "core.so",
        content="planted",
    )
    plan(incumbent, "bench.py", "tools/check.py").copy_side(Checkout(built), tmp_path / "copy")
    assert sorted(list_files(tmp_path / "copy")) == [
        "__pycache__/core.cpython-311.pyc",
        "bench.py",
        "core.py",
        "core.so",
        "tools/check.py",
        "tools/check.so",
    ]


def test_fault_06_a_link_leads_to_nothing_in_place_of_a_protected_module(tmp_path: Path) -> None:
    incumbent = tree(tmp_path / "incumbent", "helper.py", "tools/check.py", "pkg/own.py")
    (incumbent / "tools" / "check").symlink_to("check.py")
    built = tree(tmp_path / "built", "helper.py", "tools/check.py", "pkg/own.py", "evil/__init__.py")
    bytecode = Path(cache_from_source("helper.py")).name
    py_compile.compile(
        str(tree(tmp_path, "planted.py", content="WHOSE = 'candidate'") / "planted.py"),
        cfile=str(built / "evil" / bytecode),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    for link in ("__pycache__", "helper", "tools/__pycache__", "pkg/own", "pkg/__pycache__"):
        (built / link).symlink_to("/evil" if link.startswith("tools") else "evil")
    (built / "tools" / "check").symlink_to("check.py")
    copy = tmp_path / "copy"
    protection = plan(incumbent, "helper.py", "tools/check.py")
    protection.copy_side(Checkout(built), copy)
    links = [path for path in list_files(copy) if (copy / path).is_symlink()]
    assert sorted(links) == ["pkg/__pycache__", "pkg/own", "tools/check"]
    for path in protection.files:  # as they are mounted
        (copy / path).write_text("WHOSE = 'incumbent'")
    script = "import sys; sys.path.insert(0, '.'); import helper; print(helper.WHOSE)"
    done = subprocess.run([sys.executable, "-I", "-c", script], cwd=copy, capture_output=True, text=True)
    assert done.stdout == "incumbent\n", done.stderr


def test_fault_06_bytecode_of_a_protected_module_that_is_a_link_is_left_out(tmp_path: Path) -> None:
    incumbent = tree(tmp_path / "incumbent", "lib/real.py")
    (incumbent / "helper.py").symlink_to("lib/real.py")
    built = tree(
        tmp_path / "built", "lib/real.py", "__pycache__/helper.cpython-311.pyc", "helper/__init__.py"
    )
    plan(incumbent, "helper.py", "lib/real.py").copy_side(Checkout(built), tmp_path / "copy")
    assert sorted(list_files(tmp_path / "copy")) == ["helper.py", "lib/real.py"]


def test_trials_see_nothing_that_the_digest_of_a_built_tree_leaves_out(tmp_path: Path) -> None:
    """A build could leave there what no record tells of, or what cannot be copied."""
    incumbent = tree(tmp_path / "incumbent", "bench.py", "core.py")
    built = tree(tmp_path / "built", "bench.py", "core.py", ".git/made", ".roundkit/made", "pkg/.git/made")
    plan(incumbent, "bench.py").copy_side(Checkout(built), tmp_path / "copy")
    assert sorted(list_files(tmp_path / "copy")) == ["bench.py", "core.py", "pkg/.git/made"]


def test_copying_only_what_a_glob_matches_makes_no_other_folder(tmp_path: Path) -> None:
    tree(tmp_path / "from", "bench/run.py", "bench/hidden/x", "pkg/core.py")
    copy_matching(
        tmp_path / "from", tmp_path / "to", GlobSet(("bench/**",)), omit=GlobSet(("bench/hidden/**",))
    )
    assert sorted(list_files(tmp_path / "to")) == ["bench/run.py"]
    assert names_in(tmp_path / "to") == ["bench"]
    copy_matching(tmp_path / "from", tmp_path / "none", _NOTHING)
    assert names_in(tmp_path / "none") == []
