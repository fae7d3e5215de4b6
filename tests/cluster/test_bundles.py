"""K05: bundles that were made to do harm are refused before anything of them lies anywhere."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cluster.conftest import STORE, sets_of
from measure.worlds import World

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.cluster.bundles import bundle_digest, lay_folder, lay_layer, write_bundle
from roundkit.measure.cluster.cache import TreeCache
from roundkit.measure.cluster.shelf import Shelf
from roundkit.measure.materialized import Checkout
from roundkit.models.cluster import TreeRef

MIB = 1 << 20
Lay = Callable[[Path, Path], None]


def bundle_of(folder: Path, *entries: tuple[tarfile.TarInfo, bytes], removed: bytes = b"[]") -> Path:
    path = folder / "made.tar"
    first = tarfile.TarInfo("removed.json")
    first.size = len(removed)
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(first, io.BytesIO(removed))
        for info, data in entries:
            info.size = info.size or len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, *, link: str = "", data: bytes = b"x"
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, data if kind == tarfile.REGTYPE else b""


def as_folder(bundle: Path, target: Path) -> None:
    lay_folder(bundle, target, over=None)


HARM = {
    "absolute": ([entry("files//etc/evil")], b"[]"),
    "upwards": ([entry("files/../evil")], b"[]"),
    "beside": ([entry("evil")], b"[]"),
    "hardlink": ([entry("files/a", tarfile.LNKTYPE, link="/etc/passwd")], b"[]"),
    "device": ([entry("files/a", tarfile.CHRTYPE)], b"[]"),
    "pipe": ([entry("files/a", tarfile.FIFOTYPE)], b"[]"),
    "removes-upwards": ([], b'["../victim"]'),
    "removes-nonsense": ([], b'["\\u0000zz"]'),
    "removes-no-list": ([], b'{"a": 1}'),
    "empty-name": ([entry("files/")], b"[]"),
}


@pytest.mark.parametrize("lay", [as_folder, lay_layer])
@pytest.mark.parametrize("name", HARM)
def test_k05_what_leaves_its_folder_or_is_no_file_is_refused(tmp_path: Path, name: str, lay: Lay) -> None:
    entries, removed = HARM[name]
    (tmp_path / "victim").write_text("still here")
    bundle = bundle_of(tmp_path, *entries, removed=removed)
    with pytest.raises(MeasurementBroke, match="bundle-malformed"):
        lay(bundle, tmp_path / "target")
    assert (tmp_path / "victim").read_text() == "still here"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("lay", [as_folder, lay_layer])
def test_k05_nothing_is_written_through_a_symlink_of_the_bundle(tmp_path: Path, lay: Lay) -> None:
    (tmp_path / "outside").mkdir()
    link = entry("files/way", tarfile.SYMTYPE, link=str(tmp_path / "outside"))
    lay(bundle_of(tmp_path, link, entry("files/way/evil")), tmp_path / "target")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("lay", [as_folder, lay_layer])
def test_k05_a_file_of_holes_fills_no_memory(tmp_path: Path, lay: Lay) -> None:
    info = tarfile.TarInfo("files/huge")
    bundle = bundle_of(tmp_path, (info, b"x" * 512))
    data = bytearray(bundle.read_bytes())
    at = data.index(b"files/huge")
    header = data[at : at + 512]
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = b"%011o\0%011o\0" % (0, 512)  # one piece of 512 bytes,
    header[483:495] = b"%011o\0" % (8 << 30)  # of a file of 8 GiB
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[at : at + 512] = header
    bundle.write_bytes(data)
    with pytest.raises(MeasurementBroke, match="has holes"):
        lay(bundle, tmp_path / "target")


def test_k05_a_tree_of_holes_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with (tmp_path / "tree/huge").open("wb") as stream:
        stream.truncate(256 * MIB)
    with pytest.raises(MeasurementBroke, match="tree-hollow"):
        write_bundle(Checkout(tmp_path / "tree"), tmp_path / "b", over=None, most_hollow_bytes=64 * MIB)
    assert not (tmp_path / "b").exists()


def test_k05_a_cache_takes_what_was_announced_and_keeps_nothing_else(tmp_path: Path) -> None:
    cache = TreeCache(tmp_path / "cache", keep=4)
    bundle = bundle_of(tmp_path, entry("files/a"))
    data = bundle.read_bytes()
    tree = TreeRef(sha256="0" * 64, bundle_sha256=bundle_digest(bundle), bundle_bytes=len(data), over=None)
    for offset, piece, reason in (
        (0, data[:-1] + b"!", "bundle-digest"),
        (0, data + data, "bundle-digest"),
        (5, data, "bundle-order"),
    ):
        if offset:
            cache.take_piece("s", tree, 0, data[: offset + 1], as_layer=False, next_s=60)
        with pytest.raises(MeasurementBroke, match=reason):
            cache.take_piece("s", tree, offset, piece, as_layer=False, next_s=60)
        assert list((tmp_path / "cache/arriving").iterdir()) == []
        assert list((tmp_path / "cache/trees").iterdir()) == []
    cache.take_piece("s", tree, 0, data[:700], as_layer=False, next_s=60)
    cache.take_piece("s", tree, 700, data[700:], as_layer=False, next_s=60)
    assert cache.missing([tree]) == ()
    # What lies there is not what the digest says, and so it does not stay.
    with pytest.raises(MeasurementBroke, match="incumbent-digest"):
        cache.check(tree)
    assert cache.missing([tree]) == (tree.bundle_sha256,)


def test_a_bundle_that_nobody_goes_on_sending_is_removed(tmp_path: Path) -> None:
    cache = TreeCache(tmp_path / "cache", keep=4)
    bundle = bundle_of(tmp_path, entry("files/a"))
    data = bundle.read_bytes()
    tree = TreeRef(sha256="0" * 64, bundle_sha256=bundle_digest(bundle), bundle_bytes=len(data), over=None)
    cache.take_piece("gone", tree, 0, data[:700], as_layer=False, next_s=0)
    cache.take_piece("there", tree, 0, data[:700], as_layer=False, next_s=600)
    assert cache.drop_abandoned() == 1
    assert cache.drop_abandoned() == 0
    # Whoever comes back all the same is told so, and begins anew.
    with pytest.raises(MeasurementBroke, match="bundle-order"):
        cache.take_piece("gone", tree, 700, data[700:], as_layer=False, next_s=600)
    cache.take_piece("there", tree, 700, data[700:], as_layer=False, next_s=600)
    assert cache.missing([tree]) == ()
    assert list((tmp_path / "cache/arriving").iterdir()) == []


def test_a_bundle_that_takes_long_to_unpack_is_not_taken_for_an_abandoned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = TreeCache(tmp_path / "cache", keep=4)
    bundle = bundle_of(tmp_path, entry("files/a"))
    data = bundle.read_bytes()
    tree = TreeRef(sha256="0" * 64, bundle_sha256=bundle_digest(bundle), bundle_bytes=len(data), over=None)
    lay, dropped = cache.lay, []

    def slow_lay(*arguments: Any, **options: Any) -> None:
        dropped.append(cache.drop_abandoned())
        lay(*arguments, **options)

    monkeypatch.setattr(cache, "lay", slow_lay)
    cache.take_piece("s", tree, 0, data, as_layer=False, next_s=0)
    assert dropped == [0]
    assert cache.missing([tree]) == ()


def test_trees_that_several_coordinators_send_at_once_arrive_in_a_cache_with_room_for_few(
    tmp_path: Path,
) -> None:
    cache = TreeCache(tmp_path / "cache", keep=1)
    bundles = {}
    for name in ("a", "b", "c"):
        data = bundle_of(tmp_path, entry(f"files/{name}")).read_bytes()
        digest = bundle_digest(tmp_path / "made.tar")
        bundles[TreeRef(sha256="0" * 64, bundle_sha256=digest, bundle_bytes=len(data), over=None)] = data

    def send(sender: int) -> None:
        for _ in range(50):
            for tree, data in bundles.items():
                cache.take_piece(str(sender), tree, 0, data, as_layer=False, next_s=60)

    with ThreadPoolExecutor(max_workers=4) as senders:
        list(senders.map(send, range(4)))
    assert list((tmp_path / "cache/arriving").iterdir()) == []
    assert sum(not cache.missing([tree]) for tree in bundles) == 1


def test_two_lanes_with_one_candidate_are_sent_at_once(world: World, place: Path) -> None:
    shelf = Shelf(place, STORE)
    candidate = world.candidate({"prog/extra.py": "x = 1\n"})

    def pack(number: int) -> str:
        request = world.request(candidate, sets_of("a"), pairs=2, name=f"lane.{number}")
        remote, bundle = shelf.pack(request, sets_of("a")[0], now_utc())
        assert digest_bytes(bundle) == remote.candidate.bundle_sha256
        return remote.candidate.bundle_sha256

    try:
        with ThreadPoolExecutor(max_workers=4) as lanes:
            assert len(set(lanes.map(pack, range(100)))) == 1
    finally:
        shelf.close()


def test_no_two_coordinators_send_under_one_name(tmp_path: Path) -> None:
    # One after the other, as processes that start alike: an address in memory would come again.
    assert len({Shelf(tmp_path, STORE).name for _ in range(8)}) == 8
