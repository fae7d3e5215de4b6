"""The protected files of an incumbent: what is mounted over a checkout, and what a copy leaves out for it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from roundkit.core.files import NOT_COUNTED
from roundkit.core.globs import GlobSet
from roundkit.host.confine import Mount
from roundkit.host.confine.overlay import OPAQUE
from roundkit.host.confine.types import CHANGED
from roundkit.measure.layers import and_parents, copy_layer, is_covered, put_whiteout
from roundkit.measure.materialized import Checkout
from roundkit.measure.trees import copy_entry, copy_tree, list_files, make_folder, make_parents

# No file is called so; a glob that matches it matches everything in its folder.
_ANY_NAME = ".no-file-has-this-name"


@dataclass(frozen=True)
class Protection:
    """How the protected files of one built incumbent are laid over a checkout.

    Attributes:
        incumbent: The built incumbent that they come from.
        protected: Globs of what comes from the incumbent, whatever a candidate holds.
        hidden: Globs of what only the validator sees.
        folders: Folders in which every possible file is protected and none is hidden: one mount each.
        files: Single protected files, outside those folders.
        links: Single protected symlinks; they are copied, since a link cannot be mounted.
        masked: What a layer deletes of the base below it, since a copy of the base would leave it out.
    """

    incumbent: Path
    protected: GlobSet
    hidden: GlobSet
    folders: tuple[str, ...]
    files: tuple[str, ...]
    links: tuple[str, ...]
    masked: tuple[str, ...] = ()
    _modules: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)

    def mounts(self, checkout: Path) -> tuple[Mount, ...]:
        """Return the read-only mounts over a checkout that appears at that path inside the boundary."""
        return tuple(Mount(self.incumbent / path, checkout / path) for path in (*self.folders, *self.files))

    def copy_side(self, built: Checkout, target: Path) -> Checkout:
        """Copy a built checkout with mount points, instead of its own files, where protected ones go.

        What the checkout holds at hidden paths, or where its digest does not count it, is left out, and so is
        what Python would load in place of a protected module (planted bytecode, for example, or a link that
        leads to it). Of an overlay only the layer is copied.

        Args:
            built: The checkout.
            target: A folder that does not exist yet.

        Returns:
            The copy, of the same kind and with the same files in either kind.

        Raises:
            OSError: something cannot be read or written.
        """
        if built.base is None:
            copy_tree(built.folder, target, leave_out=self._left_out)
            self._make_mount_points(target)
            self._remove_stand_in_links(target)
            return Checkout(target)
        layer = target / CHANGED
        make_folder(target)
        copy_layer(built.folder / CHANGED, layer, leave_out=self._left_out)
        for path in self.masked:
            if not is_covered(layer, path):
                put_whiteout(layer, path)
        self._make_mount_points(layer)
        for path in self._remove_stand_in_links(layer):
            if os.path.lexists(built.base / path):
                put_whiteout(layer, path)
        for path in self.folders:
            os.setxattr(layer / path, OPAQUE, b"y")
        return Checkout(target, built.base)

    def _remove_stand_in_links(self, files: Path) -> list[str]:
        """Remove, and return, links where Python looks for a protected module before its source.

        Such a link may lead to a folder of any name, in which bytecode or a package would count. One that the
        incumbent has as well stays. The folders above are real ones: they have mount points in them.
        """
        places = {f"{parent}/{name}" for parent, stem in self._modules for name in ("__pycache__", stem)}
        links = []
        for path in sorted(places):
            link = _link(files / path)
            if link is not None and link != _link(self.incumbent / path):
                (files / path).unlink()
                links.append(path)
        return links

    def _make_mount_points(self, files: Path) -> None:
        for path in self.folders:
            make_parents(files, f"{path}/x")
        for path in self.files:
            make_parents(files, path)
            (files / path).touch(exist_ok=False)
        for path in self.links:
            make_parents(files, path)
            copy_entry(self.incumbent / path, files / path)

    def left_out_of(self, base: Path) -> tuple[str, ...]:
        """Return the topmost paths of a checkout that a copy leaves out, and puts nothing in place of."""
        replaced = {*self.folders, *self.files, *self.links}
        found = {
            next((above for above in reversed(list(and_parents(path))) if self._left_out(above)), None)
            for path in list_files(base)
        }
        return tuple(sorted(path for path in found if path is not None and path not in replaced))

    def _left_out(self, path: str) -> bool:
        return (
            self.protected.matches(path)
            or self.hidden.matches(path)
            or path in self.folders
            or path.partition("/")[0] in NOT_COUNTED
            or self._stands_in_for_module(path)
        )

    def _stands_in_for_module(self, path: str) -> bool:
        """Say whether Python would load this file where a protected module is asked for.

        Bytecode always does. An extension module, or a package of the same name, does too, and counts
        unless the incumbent has it as well.
        """
        pure = PurePosixPath(path)
        parent, stem = pure.parent, pure.name.partition(".")[0]
        if parent.name == "__pycache__" and (str(parent.parent), stem) in self._modules:
            return True
        extension = pure.suffix == ".so" and (str(parent), stem) in self._modules
        package = stem == "__init__" and (str(parent.parent), parent.name) in self._modules
        return (extension or package) and not (self.incumbent / path).exists()


def plan_protection(
    incumbent: Path, protected: GlobSet, hidden: GlobSet, *, base: Path | None = None
) -> Protection:
    """Work out the fewest mounts that lay an incumbent's protected files over a checkout.

    Args:
        incumbent: The built incumbent.
        protected: Globs of protected paths.
        hidden: Globs of paths that only the validator sees.
        base: Checkout that the sides are layers over, if they are.

    Raises:
        OSError: the incumbent cannot be read.
    """
    present = sorted(list_files(incumbent))
    folders: set[str] = set()
    files, links = [], []
    secret = set(hidden.select(present))
    closed = {str(parent) for path in secret for parent in PurePosixPath(path).parents}
    for path in protected.select(present):
        if path in secret:
            continue
        whole = _topmost_whole(path, protected, closed)
        if whole is not None:
            folders.add(whole)
            continue
        mode = (incumbent / path).lstat().st_mode
        if stat.S_ISLNK(mode):
            links.append(path)
        elif stat.S_ISREG(mode):
            files.append(path)
    modules = frozenset(
        (str(PurePosixPath(path).parent), PurePosixPath(path).stem)
        for path in (*files, *links)
        if path.endswith(".py")
    )
    plan = Protection(
        incumbent,
        protected,
        hidden,
        folders=tuple(sorted(folders)),
        files=tuple(files),
        links=tuple(links),
        _modules=modules,
    )
    return plan if base is None else replace(plan, masked=plan.left_out_of(base))


def _link(path: Path) -> str | None:
    """Return where a symlink leads, as it says; None where there is none."""
    return os.readlink(path) if path.is_symlink() else None  # noqa: PTH115 - as text, to be compared


def copy_matching(source: Path, target: Path, wanted: GlobSet, *, omit: GlobSet | None = None) -> None:
    """Copy only the files that a glob matches; folders exist only where such a file needs them.

    Raises:
        OSError: something cannot be read or written.
    """
    make_parents(target.parent, f"{target.name}/x")
    for path in wanted.select(sorted(list_files(source))):
        if omit is None or not omit.matches(path):
            make_parents(target, path)
            copy_entry(source / path, target / path)


def _topmost_whole(path: str, protected: GlobSet, closed: set[str]) -> str | None:
    """Return the highest folder above a path that is protected as a whole, if any is."""
    for parent in reversed(PurePosixPath(path).parents):
        folder = str(parent)
        whole = protected.matches(f"{folder}/{_ANY_NAME}") and protected.matches(
            f"{folder}/{_ANY_NAME}/{_ANY_NAME}"
        )
        if folder != "." and folder not in closed and whole:
            return folder
    return None
