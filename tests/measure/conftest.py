"""What the tests of trials and experiments ask for."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from measure.worlds import SINGLE, World, make_spec

from roundkit.measure.trees import remove_tree
from roundkit.models.round_plan import DeviceSet


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can pass through, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="roundkit-measure-")).resolve()
    folder.chmod(0o711)
    yield folder
    remove_tree(folder)


@pytest.fixture
def world(place: Path) -> World:
    """A world whose benchmark is driver and worker."""
    return World(place)


@pytest.fixture
def single_world(place: Path) -> World:
    """A world whose benchmark is one process."""
    return World(place, make_spec(SINGLE))


@pytest.fixture
def lease_root(tmp_path: Path) -> Path:
    root = tmp_path / "leases"
    root.mkdir()
    return root


@pytest.fixture
def fixture_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., DeviceSet]:
    """Declare fixture devices; returns the device set of one."""
    folder = tmp_path / "devices"
    folder.mkdir()
    monkeypatch.setenv("ROUNDKIT_FIXTURE_DEVICES", str(folder))

    def declare(name: str, content: str = "{}") -> DeviceSet:
        (folder / f"{name}.json").write_text(content)
        return DeviceSet(id=name, platform="fixture", devices=(name,))

    return declare


@pytest.fixture
def repository(tmp_path: Path) -> Callable[[Mapping[str, bytes | None]], tuple[Path, str]]:
    """Commit files to a bare repository; returns it and the commit."""

    def commit(
        files: Mapping[str, bytes | None], *, links: Mapping[str, str] | None = None
    ) -> tuple[Path, str]:
        work = tmp_path / "repository-work"
        git = [
            "git",
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "-c",
            "core.autocrlf=false",
            "-C",
            str(work),
        ]
        subprocess.run(["git", "init", "-q", str(work)], check=True)
        for name, content in files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content or b"")
            if name.endswith(".sh"):
                path.chmod(0o755)
        for name, target in (links or {}).items():
            (work / name).symlink_to(target)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "m"], check=True)
        bare = tmp_path / "repository.git"
        subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        return bare, done.stdout.strip()

    return commit
