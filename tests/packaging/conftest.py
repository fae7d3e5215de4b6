"""Wheel and source distribution, built once as ``make dist`` does, and installed with the lock's versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.packages import BIN, GUARD, ROOT, Built, Installed, git, locked, tracked, uv
from support.synthetic import reachable_folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both distributions of the files as they stand, committed in a repository of their own."""
    checkout = tmp_path_factory.mktemp("built") / "checkout"
    files = tracked(ROOT)
    for name in files:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    git(checkout, "init", "--quiet")
    git(checkout, "add", "--all", "--force")
    git(checkout, "commit", "--quiet", "--message", "As it stands")
    # What lies about and is in no commit.
    for stray in ("roundkit/stray.py", "docs/stray.md", "notebooks/stray.ipynb", "templates/stray.yaml"):
        (checkout / stray).write_text("{}")
    subprocess.run(["make", "-s", "dist", "READY=", f"BIN={BIN}"], cwd=checkout, check=True)
    out = checkout.parent / "dist"
    shutil.move(checkout / "dist", out)
    shutil.rmtree(checkout)
    [wheel], [sdist] = out.glob("*.whl"), out.glob("*.tar.gz")
    return Built(wheel, sdist, frozenset(files))


@pytest.fixture(scope="session")
def installed(built: Built) -> Iterator[Installed]:
    """The wheel installed from the package index into an empty environment, in the versions of the lock."""
    with reachable_folder() as folder:
        made = Installed(folder / "environment", folder / "empty", folder / "opened")
        for each in (made.folder, made.folder / "home"):
            each.mkdir()
        constraints = folder / "constraints.txt"
        constraints.write_text(locked((ROOT / "requirements.lock").read_text()))
        uv("venv", "--python", sys.executable, made.environment)
        uv("pip", "install", "--python", made.python, "--constraint", constraints, built.wheel)
        [packages] = made.environment.glob("lib/*/site-packages")
        (packages / "guard.py").write_text(GUARD.format(root=f"{ROOT}/", log=str(made.log)))
        (packages / "guard.pth").write_text("import guard\n")
        yield made
