"""Every number of an explanation is computed by the code beside it, and comes out as it is written."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "explanation"
COMPUTED = ("why-pairs", "two-sigma", "interaction", "pilot-limits")


@pytest.mark.parametrize("name", COMPUTED)
def test_m01_numbers_of_an_explanation_come_out_as_written(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, f"{name}.md", 0)
    said: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(found, out=said.append)
    assert results.failed == 0, "".join(said)
    assert results.attempted >= 4
