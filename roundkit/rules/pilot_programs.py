"""What a pilot may start: nothing by a path of the host, so that nothing of the host can be changed by it.

A program is named in one of three ways: ``{python}``, the frozen interpreter, which boundaries only read; a
bare name, looked up on the PATH inside the boundary; or a file below ``{files}``, a private copy in the
pilot's folder. Nothing is ever renamed, replaced or wrapped, there or elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

PYTHON = "{python}"
FILES = "{files}"


def program_problem(argv: Sequence[str], *, has_files: bool) -> str | None:
    """Say why a command may not be started by a pilot; null when it may.

    Args:
        argv: The command as the plan has it.
        has_files: Whether it has files of its own.
    """
    program = argv[0]
    if any(FILES in word for word in argv) and not has_files:
        return f"it names {FILES} and has no files of its own"
    if program == PYTHON or (program and "/" not in program and "{" not in program):
        return None
    if program.startswith(f"{FILES}/"):
        parts = PurePosixPath(program).parts[1:]
        return None if parts and ".." not in parts else f"{program!r} leaves its own files"
    return f"{program!r} lies outside the pilot's folder"


def expanded(argv: Sequence[str], *, python: str, files: str) -> tuple[str, ...]:
    """Return a command with its placeholders replaced by what they stand for inside the boundary."""
    return tuple(word.replace(PYTHON, python).replace(FILES, files) for word in argv)
