"""Analysis runs where no round can: without fcntl and its like, and without directory descriptors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "evidence/code-search/rounds/r01"

# Everything else is imported before: other packages know by themselves where they run.
_ELSEWHERE = """
import os, sys
from pathlib import Path
import altair, numpy, pandas, polars, pydantic, rfc8785, rich, scipy.stats, wcmatch.glob

blocked = {"fcntl", "resource", "pwd", "grp", "termios"}

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in blocked:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
os.supports_dir_fd.clear()
del os.sched_getaffinity

import roundkit.analysis, roundkit.audit, roundkit.report
from roundkit.core.files import atomic_write
from roundkit.evidence import EvidenceProblem
from roundkit.evidence.folder import EvidenceFolder

evidence = Path(sys.argv[1])
report = roundkit.audit.audit_round(evidence)
assert report.passed, report.failures
assert roundkit.analysis.load(evidence).tickets.collect().height > 0
atomic_write(Path(sys.argv[2]), b"written")
out = Path(sys.argv[2])
(out.parent / "blobs").symlink_to(evidence / "blobs")
try:
    EvidenceFolder(out.parent).read(f"blobs/{next((evidence / 'blobs').iterdir()).name}", limit=1 << 20)
except EvidenceProblem as problem:
    assert "link" in str(problem)
else:
    raise AssertionError("a link was followed")
try:
    from roundkit.host.confine import confined_execute
except ModuleNotFoundError as error:
    print(f"no boundary: {error}")
"""


def test_audit_and_analysis_need_no_unix(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(EVIDENCE), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no boundary: No module named ")
    assert (tmp_path / "out").read_bytes() == b"written"
