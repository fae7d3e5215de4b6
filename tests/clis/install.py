"""Install the real agents and the SwarmFlow engine, pinned and checked by integrity, for ``make test-clis``.

What cannot be had leaves its reason in a file, which the tests tell: they fail under ROUNDKIT_CI, and are
skipped elsewhere. Run as ``python -m clis.install FOLDER``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
DEFAULT = ROOT / "build" / "clis"
_SHOWN_CHARACTERS = 500


def install_agents(folder: Path) -> None:
    """Install the agents from npm by their lock file. Their programs are native: no install script is run."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "npm" / name, folder / name)
    _run(["npm", "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"])


def install_engine(folder: Path) -> None:
    """Install the engine into a folder of its own, without its heavy dependencies."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    _run([*uv, "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(HERE / "engine.txt")])


PARTS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "agents": (install_agents, ("npm/package-lock.json",)),
    "engine": (install_engine, ("engine.txt",)),
}


def install(part: str, root: Path = DEFAULT) -> None:
    """Install one part, unless what its lock file names is there already."""
    work, locks = PARTS[part]
    folder, stamp, missing = root / part, root / f"{part}.installed", root / f"{part}.missing"
    wanted = hashlib.sha256(b"".join((HERE / lock).read_bytes() for lock in locks)).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    missing.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        work(folder)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        missing.write_text(f"{part} cannot be installed: {said.strip()[-_SHOWN_CHARACTERS:]}")
        print(missing.read_text(), file=sys.stderr)
        return
    stamp.write_text(wanted)


def why_missing(part: str, root: Path = DEFAULT) -> str | None:
    """Return why a part is not there; None when it is."""
    if (root / f"{part}.installed").is_file():
        return None
    reason = root / f"{part}.missing"
    return reason.read_text() if reason.is_file() else f"{part}: run `make test-clis`, which installs it"


def _run(argv: Sequence[str]) -> None:
    subprocess.run(
        argv, check=True, text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=1200
    )


if __name__ == "__main__":
    for name in PARTS:
        install(name, Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
