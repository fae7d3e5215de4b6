"""D08: two releases of a public package, lanes from their differences, to the final report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.synthetic import commit_all

from roundkit.core.git import Repository

pytestmark = pytest.mark.slow

PACKAGE, OLD, NEW = "mistune", "3.0.2", "3.1.0"
PARTS = ("directives", "plugins", "renderers", "")
BENCH = """\
import mistune
text = "# A title\\n\\nSome *words* with [a link](/url), `code` and **more**.\\n\\n- one\\n- two\\n\\n" * 120
assert len(mistune.html(text)) > len(text)
"""


def fetch(version: str, folder: Path) -> Path:
    """Unpack a release as the package index gives it; fail where it must be there, skip elsewhere."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*words, "--only-binary", ":all:", "--dest", folder, f"{PACKAGE}=={version}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        why = f"{PACKAGE} {version} cannot be fetched: {done.stderr.strip()[-300:]}"
        assert "ROUNDKIT_CI" not in os.environ, why
        pytest.skip(why)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder / PACKAGE


def releases(root: Path) -> Repository:
    """Commit the older release with a benchmark, then what changed, a folder of the package at a time."""
    old, new = fetch(OLD, root / "old"), fetch(NEW, root / "new")
    program = root / "program"
    shutil.copytree(old, program / PACKAGE)
    (program / "bench.py").write_text(BENCH)
    subprocess.run(["git", "init", "-q", program], check=True)
    repository = Repository(program)
    commit_all(repository, ["."], f"{PACKAGE} {OLD}")
    repository.git("tag", "base")
    for part in PARTS:
        for path in sorted((new / part).glob("*.py")):
            shutil.copy(path, program / PACKAGE / part / path.name)
        commit_all(repository, ["."], f"{NEW}: {part or 'the parser itself'}")
    return repository


def test_d08_two_releases_of_a_public_package_to_the_report(open_folder: Path) -> None:
    repository = releases(open_folder)
    out = open_folder / "replayed"
    words = ["replay", "base..HEAD", "--repository", repository.path, "--out", out, "--pairs", "6"]
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", *words, "--benchmark", "python3 bench.py"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "ROUNDKIT_LEASE_ROOT": str(open_folder / "leases")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "audit: every check passed" in done.stdout
    assert (out / "report.html").stat().st_size > 100_000
    ledger = json.loads(next(out.rglob("round-ledger.json")).read_bytes())
    assert len(ledger["lanes"]) == len(PARTS)
    assert {ticket["state"] for ticket in ledger["tickets"]} == {"measured"}
    assert {ticket["provenance"] for ticket in ledger["tickets"]} == {"replay"}
