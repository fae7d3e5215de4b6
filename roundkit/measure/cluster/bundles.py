"""Trees of files as bundles: a tar of what sets a tree apart from another one, bound by its SHA-256."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from roundkit.core.canonical import canonical_bytes, digest_file, parse_json
from roundkit.core.files import path_text
from roundkit.host.confine.overlay import OPAQUE, is_opaque, is_whiteout
from roundkit.host.confine.types import CHANGED
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.hollow import hollow_bytes
from roundkit.measure.layers import and_parents, put_whiteout, walk_layer
from roundkit.measure.materialized import Checkout
from roundkit.measure.trees import copy_tree, make_folder, make_parents, remove_tree, write_file

_REMOVED = "removed.json"
_FILES = "files/"
_FOLDER = "folder"


@dataclass
class _Difference:
    """What is to be taken away from a tree and then laid on it; paths are relative."""

    removed: list[str] = field(default_factory=list)
    laid: list[str] = field(default_factory=list)


def write_bundle(
    checkout: Checkout, target: Path, *, over: Path | None, most_hollow_bytes: int | None = None
) -> None:
    """Write the bundle of a tree; the same trees give the same bytes.

    Args:
        checkout: The tree: a folder, or a layer over its base.
        target: File to write.
        over: For a folder, the tree to say the difference to; None for the whole tree. A layer is the
            difference to its base.
        most_hollow_bytes: How much larger the files may be than what they take on the disk; None is any.

    Raises:
        MeasurementBroke: ``tree-unportable``: the tree holds what is neither file, folder nor symlink;
            ``tree-hollow``: its files are larger than allowed.
        OSError: something cannot be read or written.
    """
    if checkout.base is not None:
        root, difference = checkout.folder / CHANGED, _layer_difference(checkout.folder / CHANGED)
    else:
        root, difference = checkout.folder, _folder_difference(checkout.folder, over)
    _check_hollow(root, difference.laid, most_hollow_bytes)
    with (
        target.open("wb") as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        removed = canonical_bytes([path_text(path) for path in sorted(difference.removed)])
        _add(tar, _REMOVED, tarfile.REGTYPE, data=removed)
        for path in sorted(difference.laid):
            _add_entry(tar, root, path)


def _check_hollow(root: Path, paths: Iterable[str], most_bytes: int | None) -> None:
    """Refuse files that are nothing on this disk and would fill a network, a memory and another disk."""
    found = ((root / path).lstat() for path in paths)
    if most_bytes is not None and (hollow := hollow_bytes(found)) > most_bytes:
        raise MeasurementBroke(
            "tree-hollow", f"its files are larger by {hollow} bytes than what they take on the disk"
        )


def lay_folder(bundle: Path, target: Path, *, over: Path | None) -> None:
    """Make a tree as a folder of its own from a bundle and the tree that it lies over.

    Args:
        bundle: The bundle, whose digest the caller has checked.
        target: A folder that does not exist yet; its parent does.
        over: What the bundle says the difference to; None for a whole tree.

    Raises:
        MeasurementBroke: ``bundle-malformed``.
        OSError: something cannot be read or written.
    """
    if over is None:
        make_folder(target)
    else:
        copy_tree(over, target)
    removed, entries = _read(bundle)
    for path in removed:
        if os.path.lexists(target / path) and not (target / path).parent.is_symlink():
            remove_tree(target / path)
    for member, data in entries:
        _clear_way(target, member)
        _lay(target, member, data)


def lay_layer(bundle: Path, target: Path) -> None:
    """Make a tree as a layer from a bundle: what it takes away becomes whiteouts.

    Args:
        bundle: The bundle, whose digest the caller has checked.
        target: A folder that does not exist yet; the layer goes into its ``changed``.

    Raises:
        MeasurementBroke: ``bundle-malformed``.
        OSError: something cannot be written, or the file system has no whiteouts.
    """
    layer = target / CHANGED
    make_folder(target)
    make_folder(layer)
    removed, entries = _read(bundle)
    gone, files = set(removed), set()
    for member, data in entries:
        _lay(layer, member, data)
        if not member.isdir():
            files.add(member.name)
        elif member.name in gone:
            os.setxattr(layer / member.name, OPAQUE, b"y")
        gone.discard(member.name)
    for path in sorted(gone):
        if files.isdisjoint(and_parents(path)):  # else a file already hides it
            put_whiteout(layer, path)


def bundle_digest(bundle: Path) -> str:
    """Return the SHA-256 of a bundle's bytes."""
    return digest_file(bundle)


def _layer_difference(layer: Path) -> _Difference:
    difference = _Difference()
    for path, found in walk_layer(layer):
        if is_whiteout(found):
            difference.removed.append(path)
            continue
        if stat.S_ISDIR(found.st_mode) and is_opaque(str(layer / path)):
            difference.removed.append(path)
        difference.laid.append(path)
    return difference


def _folder_difference(folder: Path, over: Path | None) -> _Difference:
    own = dict(_entries(folder))
    below = dict(_entries(over)) if over is not None else {}
    gone = {path for path in below if path not in own}
    topmost = [path for path in gone if not gone & set(list(and_parents(path))[1:])]
    return _Difference(
        removed=topmost, laid=[path for path, entry in own.items() if below.get(path) != entry]
    )


def _entries(root: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each path below a folder with its kind and what it holds."""
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(root / prefix) as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    pending.append(f"{path}/")
                    yield path, (_FOLDER, "")
                elif stat.S_ISLNK(mode):
                    yield path, ("link", str(Path(entry).readlink()))
                elif stat.S_ISREG(mode):
                    kind = "program" if mode & stat.S_IXUSR else "file"
                    yield path, (kind, digest_file(Path(entry)))
                else:
                    yield path, ("other", "")


def _add_entry(tar: tarfile.TarFile, root: Path, path: str) -> None:
    place = root / path
    mode = place.lstat().st_mode
    name = f"{_FILES}{path}"
    if stat.S_ISDIR(mode):
        _add(tar, name, tarfile.DIRTYPE)
    elif stat.S_ISLNK(mode):
        _add(tar, name, tarfile.SYMTYPE, link=str(place.readlink()))
    elif stat.S_ISREG(mode):
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            size = os.fstat(descriptor).st_size
            info = _info(name, tarfile.REGTYPE, size, executable=bool(mode & stat.S_IXUSR))
            tar.addfile(info, stream)
    else:
        raise MeasurementBroke("tree-unportable", f"{path!r} is neither a file, a folder nor a symlink")


def _add(tar: tarfile.TarFile, name: str, kind: bytes, *, data: bytes = b"", link: str = "") -> None:
    info = _info(name, kind, len(data))
    info.linkname = link
    tar.addfile(info, io.BytesIO(data))


def _info(name: str, kind: bytes, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    """Return a header without anything of the machine: no owner, no time."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, size, 0o755 if executable else 0o644
    return info


def _read(bundle: Path) -> tuple[list[str], Iterator[tuple[tarfile.TarInfo, bytes]]]:
    """Return what is taken away, and the entries that are laid, each with a checked path."""
    tar = tarfile.open(bundle, mode="r:", format=tarfile.GNU_FORMAT)  # noqa: SIM115 - closed by _members
    members = _members(tar)
    first = next(members, None)
    if first is None or first[0].name != _REMOVED:
        raise _malformed(f"it does not begin with {_REMOVED}")
    listed = parse_json(first[1], place=_REMOVED)
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        raise _malformed(f"{_REMOVED} is no list of paths")
    try:
        return [_checked(_path_of(path)) for path in listed], _below_files(members)
    except ValueError as error:
        raise _malformed(f"{_REMOVED} has a path that is none") from error


def _members(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    try:
        with tar:
            for member in tar:
                if member.issparse():
                    raise _malformed(f"{member.name!r} has holes")
                stream = tar.extractfile(member) if member.isreg() else None
                yield member, stream.read() if stream is not None else b""
    except tarfile.TarError as error:
        raise _malformed(str(error)) from error


def _below_files(
    members: Iterable[tuple[tarfile.TarInfo, bytes]],
) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for member, data in members:
        if not member.name.startswith(_FILES) or not (member.isreg() or member.isdir() or member.issym()):
            raise _malformed(f"{member.name!r} does not belong in it")
        member.name = _checked(member.name.removeprefix(_FILES))
        yield member, data


def _path_of(text: str) -> str:
    return os.fsdecode(bytes.fromhex(text[1:])) if text.startswith("\0") else text


def _checked(path: str) -> str:
    if any(part in {"", ".", ".."} for part in path.split("/")) or "\0" in path:
        raise _malformed(f"the path {path!r} leaves its folder")
    return path


def _clear_way(target: Path, member: tarfile.TarInfo) -> None:
    """Remove what stands where an entry goes; folders stay where a folder goes."""
    make_parents(target, member.name)
    place = target / member.name
    if os.path.lexists(place) and not (member.isdir() and place.is_dir() and not place.is_symlink()):
        remove_tree(place)


def _lay(target: Path, member: tarfile.TarInfo, data: bytes) -> None:
    make_parents(target, member.name)
    place = target / member.name
    if member.isdir():
        if not place.is_dir():
            make_folder(place)
    elif member.issym():
        place.symlink_to(member.linkname)
    else:
        write_file(place, data, executable=bool(member.mode & stat.S_IXUSR))


def _malformed(why: str) -> MeasurementBroke:
    return MeasurementBroke("bundle-malformed", f"the bundle cannot be unpacked: {why}")
