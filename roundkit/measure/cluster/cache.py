"""Trees that a worker keeps between experiments, by the digest of the bundle that made them."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable
from pathlib import Path

from roundkit.core.canonical import digest_json
from roundkit.core.clock import Deadline
from roundkit.core.files import tree_digest
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.cluster.bundles import bundle_digest, lay_folder, lay_layer
from roundkit.measure.materialized import Checkout
from roundkit.measure.trees import remove_tree
from roundkit.models.cluster import TreeRef


class TreeCache:
    """Trees below one folder, of which nothing is believed: each use compares the files with their digest.

    Args:
        root: A folder of this worker alone; made when missing.
        keep: How many trees stay; those that were not used for longest go first.
    """

    def __init__(self, root: Path, *, keep: int) -> None:
        self._root = root
        self._keep = keep
        for folder in (root, self._trees, self._arriving):
            folder.mkdir(parents=True, exist_ok=True)
            # Passable, not readable: a confined command reaches what it is given as a user of its own.
            folder.chmod(0o711)
        for leftover in self._arriving.iterdir():
            remove_tree(leftover)
        self._lock = threading.Lock()
        self._placing = threading.Lock()
        self._until: dict[Path, Deadline] = {}

    @property
    def _trees(self) -> Path:
        return self._root / "trees"

    @property
    def _arriving(self) -> Path:
        return self._root / "arriving"

    def missing(self, trees: Iterable[TreeRef]) -> tuple[str, ...]:
        """Return the bundles of the trees that are not here, in the order given; the others count as used."""
        return tuple(tree.bundle_sha256 for tree in trees if not self._touch(tree))

    def take_piece(
        self, sender: str, tree: TreeRef, offset: int, piece: bytes, *, as_layer: bool, next_s: float
    ) -> None:
        """Take the next piece of a tree's bundle, and unpack it once it is whole.

        Args:
            sender: Who sends; two may send the same tree at once.
            tree: What is being sent.
            offset: Where the piece belongs; 0 begins anew.
            piece: The bytes.
            as_layer: Unpack as a layer over what it says the difference to.
            next_s: Within how many seconds the sender sends the next piece, or never.

        Raises:
            MeasurementBroke: ``bundle-digest``: the bytes are not those that were announced;
                ``tree-digest``: they make another tree; ``bundle-order``: a piece is missing.
            OSError: something cannot be written.
        """
        arriving = self._arriving / digest_json([sender, tree.bundle_sha256])
        with self._lock:
            self._until[arriving] = Deadline.after(next_s)
        if offset == 0:
            arriving.write_bytes(b"")
        try:
            whole = _append(arriving, offset, piece)
            if whole < tree.bundle_bytes:
                return
            with self._lock:
                self._until.pop(arriving, None)  # unpacking it may take longer
            self._unpack(tree, arriving, as_layer=as_layer)
        except BaseException:
            # What came of it would fill the disk of a worker that has no room for it.
            self._forget(arriving)
            raise
        self._forget(arriving)

    def drop_abandoned(self) -> int:
        """Remove what coordinators began to send and never will go on with; return how many bundles."""
        with self._lock:
            abandoned = [path for path, until in self._until.items() if until.expired()]
            for path in abandoned:
                del self._until[path]
                path.unlink(missing_ok=True)
        return len(abandoned)

    def _forget(self, arriving: Path) -> None:
        with self._lock:
            self._until.pop(arriving, None)
        arriving.unlink(missing_ok=True)

    def _unpack(self, tree: TreeRef, bundle: Path, *, as_layer: bool) -> None:
        check_bundle(tree, bundle)
        making = self._arriving / secrets.token_hex(8)
        try:
            self.lay(tree, bundle, making, as_layer=as_layer)
            with self._placing:  # another coordinator may have sent it, or another tree, at the same time
                if not self._place(tree).exists():
                    self._make_room()
                    making.rename(self._place(tree))
        finally:
            remove_tree(making)

    def lay(self, tree: TreeRef, bundle: Path, target: Path, *, as_layer: bool) -> None:
        """Unpack a bundle over a tree that is here.

        Raises:
            MeasurementBroke: ``bundle-malformed``, or ``tree-missing``: what it lies over is not here.
            OSError: something cannot be written.
        """
        if as_layer:
            lay_layer(bundle, target)
        else:
            lay_folder(bundle, target, over=self._below(tree))

    def _below(self, tree: TreeRef) -> Path | None:
        if tree.over is None:
            return None
        below = self._trees / tree.over
        if not below.is_dir():
            raise MeasurementBroke("tree-missing", f"the tree {tree.over} is not here")
        return below

    def folder(self, tree: TreeRef) -> Path:
        """Return where a tree lies."""
        return self._place(tree)

    def check(self, tree: TreeRef, *, base: Path | None = None, skip: frozenset[str] | None = None) -> None:
        """Compare a tree's files with its digest; one that is another is thrown away.

        Args:
            tree: The tree.
            base: What it is a layer over; None for a folder of its own.
            skip: Names at its top that do not count, where they are not a checkout's.

        Raises:
            MeasurementBroke: ``incumbent-digest``: these are not the files that were sent.
            OSError: something cannot be read.
        """
        place = self._place(tree)
        found = tree_digest(place, skip=skip) if skip is not None else Checkout(place, base).digest()
        if found != tree.sha256:
            remove_tree(place)
            raise MeasurementBroke(
                "incumbent-digest",
                f"what this worker kept as {tree.sha256} had become {found}; it is gone now",
            )

    def _touch(self, tree: TreeRef) -> bool:
        """Remember that a tree was used; say whether it is here."""
        try:
            os.utime(self._place(tree))
        except FileNotFoundError:
            return False
        return True

    def _place(self, tree: TreeRef) -> Path:
        return self._trees / tree.bundle_sha256

    def _make_room(self) -> None:
        kept = sorted(self._trees.iterdir(), key=lambda place: place.stat().st_mtime)
        for place in kept[: max(0, len(kept) - self._keep + 1)]:
            remove_tree(place)


def _append(arriving: Path, offset: int, piece: bytes) -> int:
    """Add a piece to what has arrived, and return how much that is now."""
    try:
        with arriving.open("r+b") as stream:
            if stream.seek(0, os.SEEK_END) != offset:
                raise MeasurementBroke("bundle-order", f"a piece for {arriving.name} is missing")
            stream.write(piece)
            return stream.tell()
    except FileNotFoundError as error:
        raise MeasurementBroke("bundle-order", f"the first pieces for {arriving.name} are gone") from error


def check_bundle(tree: TreeRef, bundle: Path) -> None:
    """Compare a bundle's bytes with what was announced.

    Raises:
        MeasurementBroke: ``bundle-digest``.
    """
    found = bundle_digest(bundle)
    if found != tree.bundle_sha256:
        raise MeasurementBroke(
            "bundle-digest", f"a bundle arrived as {found}, announced {tree.bundle_sha256}"
        )
