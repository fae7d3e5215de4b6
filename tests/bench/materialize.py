"""Laying a candidate of a few files on a large tree: a layer over a shared base, and what git does."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.result import Figure, ratio_interval
from support.synthetic import reachable_folder

from roundkit.core.clock import Deadline
from roundkit.core.git import Repository, identity_environment
from roundkit.host.confine import Limits, confined_execute
from roundkit.measure.checkout import materialize
from roundkit.measure.materialized import Base, lay_checkout, overlay_missing
from roundkit.measure.trees import remove_tree

TARGET = 20.0
CHANGED_FILES = 5
INSIDE = Path("/round/checkout")
LIMITS = Limits(
    output_bytes=1 << 16, output_kill_bytes=1 << 22, file_bytes=1 << 26, open_files=256, tmp_bytes=1 << 24
)


@dataclass(frozen=True)
class _Scene:
    folder: Path
    repository: Path
    base: Base
    candidate: str


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield how many times faster a candidate is materialized than by ``git worktree add`` and by a clone."""
    files, rounds = (200, 2) if tiny else (50_000, 3)
    with reachable_folder() as folder:
        scene = _build(folder, files)
        if missing := overlay_missing(folder):
            raise RuntimeError(f"this machine shows no tree put together of layers: {missing}")
        times: dict[Callable[[_Scene, Path], None], list[float]] = {
            run: [] for run in (_layer, _worktree, _clone)
        }
        for number in range(rounds):
            for run, kept in times.items():
                kept.append(_took_s(run, scene, folder / f"{run.__name__}-{number}"))
        yield from _figures(files, rounds, times[_layer], times[_worktree], times[_clone])


def _figures(
    files: int, rounds: int, ours: list[float], worktree: list[float], clone: list[float]
) -> Iterator[Figure]:
    detail = {
        "files": files, "changed_files": CHANGED_FILES, "rounds": rounds,
        "layer_and_confined_start_ms": statistics.median(ours) * 1000,
        "worktree_s": statistics.median(worktree), "clone_s": statistics.median(clone),
    }  # fmt: skip
    what = f"materializing {CHANGED_FILES} files on a tree of {files:,}, and a start in it"
    for name, their_name, theirs, target in (
        ("materialize-worktree", "`git worktree add`", worktree, TARGET),
        ("materialize-clone", "a local clone", clone, None),
    ):
        ratio, low, high = ratio_interval(theirs, ours)
        yield Figure(
            name, f"{what}: times faster than {their_name}", ratio, "x", target, "higher",
            {**detail, "interval": (low, high)},
        )  # fmt: skip


def _build(folder: Path, files: int) -> _Scene:
    """Commit a tree of many small files, and a candidate that changes a few of them."""
    work = folder / "work"
    for number in range(files):
        path = work / f"part{number % 50}" / f"module{number // 50 % 20}" / f"file{number:06d}.py"
        if number < 1000:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n" * 20)
    subprocess.run(["git", "init", "-q", work], check=True)
    repository = Repository(work)
    incumbent = _commit(repository)
    for number in range(CHANGED_FILES):
        (work / f"part{number}" / "module0" / f"file{number:06d}.py").write_text("changed\n")
    candidate = _commit(repository)
    materialize(work, incumbent, folder / "base")
    return _Scene(folder, work, Base(folder / "base", incumbent), candidate)


def _commit(repository: Repository) -> str:
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "m", env=identity_environment("n", "n@x", "2026-01-01T00:00:00Z"))
    return repository.git("rev-parse", "HEAD").text


def _layer(scene: _Scene, target: Path) -> None:
    """Lay the candidate over the base, and start a command that sees the whole tree."""
    laid = lay_checkout(scene.repository, scene.candidate, target, base=scene.base)
    done = confined_execute(
        ["/bin/true"], cwd=INSIDE, writable=(), readable=laid.mounts(INSIDE),
        overlay=laid.overlay(INSIDE, writable=True), deadline=Deadline.after(120),
        env={"PATH": "/usr/bin:/bin"}, limits=LIMITS,
    )  # fmt: skip
    assert done.exit_code == 0, done


def _worktree(scene: _Scene, target: Path) -> None:
    Repository(scene.repository).git("worktree", "add", "-q", "--detach", target, scene.candidate)


def _clone(scene: _Scene, target: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--local", scene.repository, target], check=True)


def _took_s(run: Callable[[_Scene, Path], None], scene: _Scene, target: Path) -> float:
    started_s = time.perf_counter()
    run(scene, target)
    took_s = time.perf_counter() - started_s
    remove_tree(target)
    shutil.rmtree(scene.repository / ".git" / "worktrees", ignore_errors=True)
    return took_s
