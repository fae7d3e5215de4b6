"""The one list of commands that are not run as the page has them: why not, and what is run in their place.

Every other command of every page is run as it stands there. An entry that no page has fails a test.
"""

from __future__ import annotations

from dataclasses import dataclass

from docs.reading import Command


@dataclass(frozen=True)
class Replaced:
    """A command that cannot run in a test.

    Attributes:
        command: How it begins.
        why: Why not, and which test runs the nearest real thing in full.
        instead: What the shell is given in its place.
    """

    command: str
    why: str
    instead: str


_CI = "`.ci/run` runs it before and after these tests; a test that ran it would run itself"
_MAKE = "make --no-print-directory --directory=REPOSITORY"
_DRY = f"{_MAKE} --dry-run"

REPLACED = (
    Replaced("make env", f"it makes the environment that this test runs in; {_CI}", f"{_DRY} env"),
    Replaced("make test", _CI, f"{_DRY} test"),
    Replaced("make test-slow", _CI, f"{_DRY} test-slow"),
    Replaced("make test-clis", f"{_CI}; it installs 900 MB", f"{_DRY} test-clis"),
    Replaced("make lint", _CI, f"{_DRY} lint"),
    Replaced("make format", "changes what is committed", f"{_DRY} format"),
    Replaced(
        "make test-gpu", "as it is, but for making the environment anew", f"{_MAKE} -o .venv/.ready test-gpu"
    ),
    Replaced("make demo", "tests/slow/test_demo.py runs what it runs", f"{_DRY} demo"),
    Replaced("make chaos", "takes most of an hour; tests/slow/test_chaos.py kills fewer", f"{_DRY} chaos"),
    Replaced("make bench", "writes docs/performance.md; tests/bench runs what it runs", f"{_DRY} bench"),
    Replaced("make docs", _CI, f"{_DRY} docs"),
    Replaced("make docs-links", "asks servers elsewhere whether their pages are there", f"{_DRY} docs-links"),
    Replaced("make lock", "asks the package index for new versions of everything", f"{_DRY} lock"),
    Replaced("make evidence", "writes what is committed, in twenty minutes", f"{_DRY} evidence"),
    Replaced("make policy-evidence", "writes what is committed", f"{_DRY} policy-evidence"),
    Replaced("make waves-evidence", "writes what is committed", f"{_DRY} waves-evidence"),
    Replaced("make dist", "tests/packaging builds and installs what it builds", f"{_DRY} dist"),
    Replaced("make example", "tests/slow/test_public_package.py runs what it runs", f"{_DRY} example"),
    Replaced(
        "pip install 'roundkit[cluster]'",
        "the environment of a test stays as it is; pip says whether everything is there",
        "pip install --dry-run --no-index --disable-pip-version-check 'roundkit[cluster]'",
    ),
    Replaced(
        "npm install --global @anthropic-ai/claude-code",
        "the real one is installed and run by tests/clis/test_claude_code.py; a stub of it is on the PATH",
        "claude --version",
    ),
    Replaced(
        "npm install --global @openai/codex",
        "the real one is installed and run by tests/clis/test_codex.py; a stub of it is on the PATH",
        "codex --version",
    ),
    Replaced(
        "pip install --no-deps --target swarmflow-engine",
        "the real engine is run by tests/clis/test_swarmflow_engine.py; a package that plays it is here",
        "test -d swarmflow-engine/openjiuwen",
    ),
)


def replacement(command: Command) -> Replaced | None:
    """Return what stands for a command; None where it is run as it is."""
    found = [entry for entry in REPLACED if command.begins(entry.command)]
    return max(found, key=lambda entry: len(entry.command)) if found else None
