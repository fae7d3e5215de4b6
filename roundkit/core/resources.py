"""Where the files that ship with roundkit lie: templates, notebooks, and programs that run elsewhere."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(kind: str) -> Path:
    """Return the folder of shipped ``templates`` or ``notebooks``.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for root in (_PACKAGE / "_shipped", _PACKAGE.parent):
        if (root / kind).is_dir():
            return root / kind
    raise FileNotFoundError(f"this installation of roundkit has no {kind} folder; install it again")


def near(path: str | Path) -> Path | None:
    """Return a folder given by a path that is absolute, or relative to this folder or one above it."""
    here = Path.cwd()
    return next((each / path for each in (here, *here.parents) if (each / path).is_dir()), None)


def harness_folder() -> Path:
    """Return the folder of the standard-library-only benchmark harness."""
    return _PACKAGE / "harness"


def lane_wrapper() -> Path:
    """Return the standard-library-only program that submits a lane's changes."""
    return _PACKAGE / "rounds" / "lane_wrapper.py"
