"""A materialized tree: a folder of its own, or what sets it apart from a base that it shares with others."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.core.files import tree_digest
from roundkit.core.globs import GlobSet
from roundkit.core.relpath import MAX_PATH_BYTES
from roundkit.host.confine import ConfinementUnavailable, Limits, Mount, Overlay, confined_execute
from roundkit.host.confine.types import CHANGED
from roundkit.measure.checkout import materialize, materialize_layer
from roundkit.measure.layers import merged_digest, walk_layer
from roundkit.measure.trees import list_files, make_folder, remove_tree, write_file
from roundkit.models.experiment import CheckoutKind
from roundkit.models.measurement import SideRef

TRIED_PREFIX = ".overlay-"
"""How the folders begin in which :func:`overlay_missing` tries; a killed process leaves one behind."""
_PROBE_WITHIN_S = 30
_PROBE_LIMITS = Limits(
    output_bytes=1 << 12, output_kill_bytes=1 << 16, file_bytes=1 << 20, open_files=64, tmp_bytes=1 << 20
)
_PROBE_INSIDE = Path("/round/checkout")
_PROBE_SCRIPT = "echo more >> kept && rm gone && rm -r folder && mkdir folder && echo new > folder/new"


@dataclass(frozen=True)
class Checkout:
    """One materialized tree.

    Attributes:
        folder: The files; with a base, the layer over it in ``changed``.
        base: Checkout that is the lower layer, null for a plain one. Nobody ever writes to it.
    """

    folder: Path
    base: Path | None = None

    @property
    def kind(self) -> CheckoutKind:
        """Which of the two it is."""
        return "plain" if self.base is None else "overlay"

    def digest(self) -> str:
        """Return the digest of the tree, the same for both kinds.

        Raises:
            OSError: something cannot be read.
        """
        if self.base is None:
            return tree_digest(self.folder)
        return merged_digest(self.base, self.folder / CHANGED)

    def overlong_path(self) -> str | None:
        """Return a path, of a file or a folder, that may not fit below another folder; None where all do.

        Raises:
            OSError: something cannot be read.
        """
        if self.base is None:
            own = list_files(self.folder, folders=True)
        else:
            own = (relative for relative, _ in walk_layer(self.folder / CHANGED))
        return next((path for path in own if len(os.fsencode(path)) > MAX_PATH_BYTES), None)

    def mounts(self, at: Path) -> tuple[Mount, ...]:
        """Return the mount that shows a plain checkout at a path, nothing for an overlay."""
        return (Mount(self.folder.resolve(), at),) if self.base is None else ()

    def overlay(self, at: Path, *, writable: bool) -> Overlay | None:
        """Return the overlay that shows the tree at a path, None for a plain checkout."""
        if self.base is None:
            return None
        base, folder = self.base.resolve(), self.folder.resolve()
        if writable:
            return Overlay((base,), at, folder)
        return Overlay((base, folder / CHANGED), at)


@dataclass(frozen=True)
class Base:
    """The checkout of a commit that others are laid over."""

    folder: Path
    commit: str


def checkout_of(side: SideRef) -> Checkout:
    """Return the built checkout of one side of an experiment."""
    return Checkout(Path(side.built), None if side.base is None else Path(side.base))


def lay_checkout(
    repository: Path, commit: str, target: Path, *, base: Base | None, omit: GlobSet | None = None
) -> Checkout:
    """Materialize a commit: over a base in constant time however large the tree is, else file by file.

    Args:
        repository: The repository, bare or not.
        commit: Id of the commit.
        target: Folder to make.
        base: A checkout of another commit without the same files, where overlays can be had.
        omit: Files to leave out.

    Raises:
        Refused, CommandFailed, OSError: as for :func:`materialize`.
    """
    if base is None:
        materialize(repository, commit, target, omit=omit)
        return Checkout(target)
    make_folder(target)
    make_folder(target / CHANGED)
    materialize_layer(repository, base.commit, commit, target / CHANGED, omit=omit)
    return Checkout(target, base.folder)


def overlay_missing(folder: Path) -> str | None:
    """Say why trees below a folder cannot be overlays on this machine; None if they can.

    Tried out once a process and file system, behind the boundary itself: a file is changed and one
    deleted, a folder replaced, and what is read of the layers must be what a plain checkout would hold.

    Args:
        folder: An existing folder that the coordinator may write.
    """
    return _overlay_missing(folder.resolve(), folder.stat().st_dev)


@cache
def _overlay_missing(folder: Path, _device: int) -> str | None:
    place = Path(tempfile.mkdtemp(prefix=TRIED_PREFIX, dir=folder))
    try:
        place.chmod(0o711)
        before = {"kept": b"kept\n", "gone": b"gone\n", "folder/old": b"old\n"}
        after = {"kept": b"kept\nmore\n", "folder/new": b"new\n"}
        for name, files in (("base", before), ("plain", after)):
            _write_files(place / name, files)
        tried = Checkout(place / "tried", place / "base")
        make_folder(tried.folder)
        return _try_out(tried, tree_digest(place / "plain"))
    except (ConfinementUnavailable, Refused, OSError) as error:
        return str(error)
    finally:
        remove_tree(place)


def _write_files(root: Path, files: dict[str, bytes]) -> None:
    make_folder(root)
    for name, content in files.items():
        if "/" in name:
            make_folder(root / name.partition("/")[0])
        write_file(root / name, content, executable=False)


def _try_out(tried: Checkout, expected: str) -> str | None:
    done = confined_execute(
        ["/bin/sh", "-c", _PROBE_SCRIPT],
        cwd=_PROBE_INSIDE,
        writable=(),
        readable=(),
        overlay=tried.overlay(_PROBE_INSIDE, writable=True),
        deadline=Deadline.after(_PROBE_WITHIN_S),
        env={"PATH": "/usr/bin:/bin"},
        limits=_PROBE_LIMITS,
    )
    if done.exit_code != 0:
        return done.detail or done.stderr_tail or f"the attempt ended with {done.exit_code}"
    if tried.digest() != expected:
        return "what the layers hold is not what was written"
    return None
