"""What a test needs of the machine beside Python and git."""

from __future__ import annotations

import os

import pytest

from roundkit.measure.instruments.tools import find_tool

# Continuous integration installs it, so that there the tests fail instead.
needs_valgrind = pytest.mark.skipif(
    find_tool("valgrind") is None and "ROUNDKIT_CI" not in os.environ, reason="valgrind is not installed"
)
