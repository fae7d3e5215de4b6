"""What a test needs of the machine beside Python and git; CI installs it, so that there the tests fail."""

from __future__ import annotations

import os

import pytest

from roundkit.measure.instruments.tools import find_tool


def _needs(tool: str) -> pytest.MarkDecorator:
    absent = find_tool(tool) is None and "ROUNDKIT_CI" not in os.environ
    return pytest.mark.skipif(absent, reason=f"{tool} is not installed")


needs_perf = _needs("perf")
needs_valgrind = _needs("valgrind")
