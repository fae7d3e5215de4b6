"""The libraries of the optional extra ``roundkit[cluster]``: what to install where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from roundkit.core.errors import refuse

EXTRA = "roundkit[cluster]"


def require(*libraries: str) -> None:
    """Check that libraries of the extra are installed, before anything is begun.

    Raises:
        Refused: ``missing-extra``.
    """
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise refuse(
            "missing-extra",
            f"this needs {' and '.join(missing)}, which is not installed",
            remedy=f"install the extra: pip install '{EXTRA}'",
        )
