"""The libraries of the optional extra ``roundkit[cluster]``: what to install where one is missing."""

from __future__ import annotations

from importlib import import_module

from roundkit.core.errors import refuse

EXTRA = "roundkit[cluster]"
LIBRARIES = ("cryptography", "dask-jobqueue", "distributed", "nvidia-ml-py")
"""What the extra installs, under the names of the package index."""


def require(*libraries: str) -> None:
    """Check that libraries of the extra are installed, before anything is begun.

    Raises:
        Refused: ``missing-extra``.
    """
    missing = [library for library in libraries if not _can_be_imported(library)]
    if missing:
        raise refuse(
            "missing-extra",
            f"this needs {' and '.join(missing)}, which is not installed",
            remedy=f"install the extra: pip install '{EXTRA}'",
        )


def _can_be_imported(library: str) -> bool:
    try:
        import_module(library)
    except ImportError:
        return False
    return True
