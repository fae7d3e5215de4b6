"""A tree put together of layers (C11): what changes stays in the upper one, and holds as a boundary."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from roundkit.core.files import tree_digest
from roundkit.host.confine import Mount, Overlay
from roundkit.host.confine.overlay import OPAQUE
from roundkit.host.confine.types import CHANGED

OWNER = (2713, 2713)
INSIDE = Path("/round/checkout")
CHANGE = """
import os, shutil
open('src/program.py', 'a').write('more')
os.chmod('src/program.py', 0o755)
os.remove('gone')
shutil.rmtree('folder')
os.mkdir('folder')
open('folder/new', 'w').write('new')
os.remove('file')
os.mkdir('file')
open('file/inside', 'w').write('inside')
shutil.rmtree('other')
open('other', 'w').write('a file now')
os.rename('old', 'renamed')
os.symlink('src/program.py', 'link')
os.remove('was-link')
open('was-link', 'w').write('a file now')
"""
TRY = """
import errno, json, os
def attempt(name, *arguments):
    try:
        getattr(os, name)(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'done'
print(json.dumps({
    'rename folder': attempt('rename', 'bench', 'moved'),
    'rename file': attempt('rename', 'bench/benchmark.py', 'bench/other.py'),
    'remove file': attempt('remove', 'bench/benchmark.py'),
    'replace file': attempt('rename', 'src/program.py', 'bench/benchmark.py'),
    'write file': attempt('truncate', 'bench/benchmark.py', 0),
    'mark opaque': attempt('setxattr', 'bench', 'user.overlay.opaque', b'y'),
    'whiteout': attempt('mknod', 'bench/whiteout', 0o020000, 0),
    'trusted': attempt('setxattr', 'bench', 'trusted.overlay.opaque', b'y'),
    'seen': open('bench/benchmark.py').read(),
}))
"""


@pytest.fixture
def layered(world):
    """A base of many kinds of files and a folder for changes, owned by the coordinator."""
    for name in ("gone", "file", "old", "folder/old", "other/a", "other/b/c"):
        path = world.checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (world.checkout / "was-link").symlink_to("old")
    changes = world.root / "changes"
    changes.mkdir()
    for path in [world.checkout, *world.checkout.rglob("*"), changes]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
        if os.geteuid() == 0 and world.mode == "user":
            os.lchown(path, *OWNER)
    return Overlay((world.checkout,), INSIDE, changes)


def test_c11_changes_go_to_the_upper_layer_and_nowhere_else(world, layered):
    before = tree_digest(world.checkout)
    plain = world.root / "plain"
    shutil.copytree(world.checkout, plain, symlinks=True)
    subprocess.run(["/usr/bin/python3", "-c", CHANGE], cwd=plain, check=True)

    done = world.python(CHANGE, overlay=layered, writable=[], readable=[], cwd=INSIDE)

    assert (done.end_reason, done.exit_code) == ("exited", 0), done
    assert tree_digest(world.checkout) == before
    upper = layered.changes / CHANGED
    assert (upper / "gone").lstat().st_rdev == 0
    assert os.getxattr(upper / "folder", OPAQUE) == b"y"
    assert (upper / "file").is_dir()
    seen = world.python(SEE, overlay=merged(layered), writable=[], readable=[], cwd=INSIDE)
    shown = subprocess.run(["/usr/bin/python3", "-c", SEE], cwd=plain, check=True, capture_output=True)
    assert seen.stdout_tail == shown.stdout.decode()


SEE = """
import os, hashlib
for top, folders, names in sorted(os.walk('.')):
    for name in sorted(folders + names):
        path = os.path.join(top, name)
        content = os.readlink(path) if os.path.islink(path) else ''
        if os.path.isfile(path) and not os.path.islink(path): content = open(path).read()
        print(path, oct(os.lstat(path).st_mode), content)
"""


def merged(overlay: Overlay) -> Overlay:
    return Overlay((*overlay.layers, overlay.changes / CHANGED), overlay.at)


def test_c11_the_record_names_every_layer(world, layered):
    done = world.run("true", overlay=layered, writable=[], readable=[], cwd=INSIDE)
    layers = [(mount.source, mount.mode) for mount in done.boundary.mounts if mount.at == str(INSIDE)]
    assert layers == [(str(world.checkout), "ro"), (str(layered.changes), "rw")]


def test_c11_a_merged_tree_that_is_only_read_cannot_be_written(world, layered):
    world.run("true", overlay=layered, writable=[], readable=[], cwd=INSIDE)
    script = "open('src/program.py', 'a')"
    done = world.python(script, overlay=merged(layered), writable=[], readable=[], cwd=INSIDE)
    assert done.exit_code == 1
    assert "Read-only file system" in done.stderr_tail


def test_c01_protected_files_over_a_merged_tree_stay_where_they_are(world, layered):
    over = Mount(world.protected, INSIDE / "bench" / "benchmark.py")
    tried = world.attempts(TRY, overlay=layered, writable=[], readable=[over], cwd=INSIDE)
    assert tried.pop("seen") == "print('honest')\n"
    # Escaped by the kernel where it does not refuse: the folder is not marked, and the base still shows.
    tried.pop("mark opaque")
    assert "done" not in tried.values(), tried
    upper = layered.changes / CHANGED / "bench"
    assert not upper.exists() or OPAQUE not in os.listxattr(upper)
    assert not world.changed()


def test_c01_a_mount_point_that_could_be_moved_away_is_refused(world, layered, refused):
    over = Mount(world.protected, INSIDE / "folder" / "old")
    assert world.python(CHANGE, overlay=layered, writable=[], readable=[], cwd=INSIDE).exit_code == 0
    options = {"overlay": layered, "writable": [], "cwd": INSIDE}
    assert refused(world.run, "true", readable=[over], **options) == "mount-point"
    link = Mount(world.protected, INSIDE / "link")
    assert refused(world.run, "true", readable=[link], **options) == "mount-point"
    missing = Mount(world.protected, INSIDE / "gone")
    assert refused(world.run, "true", readable=[missing], **options) == "mount-point"


def test_a_place_around_a_merged_tree_is_refused(world, layered, refused):
    around = Mount(world.trial, INSIDE.parent)
    code = refused(world.run, "true", overlay=layered, writable=[], readable=[around], cwd=INSIDE)
    assert code == "mount-twice"


def test_c05_what_an_upper_layer_takes_is_bounded(world, layered):
    script = "import time\nwith open('big', 'wb') as f:\n while True: f.write(bytes(1 << 20)); f.flush()"
    done = world.python(
        script, overlay=layered, writable=[], readable=[], cwd=INSIDE, disk_bytes=4 << 20, file_bytes=1 << 30
    )
    assert done.end_reason == "disk-limit", done


def test_c13_two_commands_share_a_base_and_not_their_changes(world, layered):
    second = Overlay(layered.layers, INSIDE, world.root / "second")
    second.changes.mkdir(mode=0o755)
    if os.geteuid() == 0 and world.mode == "user":
        os.chown(second.changes, *OWNER)
    script = "import os; print(os.path.exists('mine')); open('mine', 'w'); open('src/program.py', 'a')"
    found = []
    for overlay in (layered, second, layered):
        done = world.python(script, overlay=overlay, writable=[], readable=[], cwd=INSIDE)
        assert done.exit_code == 0, done.stderr_tail
        found.append(done.stdout_tail)
    assert found == ["False\n", "False\n", "True\n"]
