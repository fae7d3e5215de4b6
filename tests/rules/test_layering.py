"""Files and folders in each other's place."""

import pytest

from roundkit.rules.layering import misfit


@pytest.mark.parametrize(
    ("removed", "written", "expected"),
    [
        ([], ["a/new.py"], None),
        ([], ["a/b.py"], None),
        ([], ["a"], "a"),
        ([], ["top.py/below"], "top.py"),
        (["top.py"], ["top.py/below"], None),
        (["a/b.py", "a/c.py"], ["a"], None),
        (["a/b.py"], ["a"], "a"),
        ([], ["x", "x/y"], "x"),
        ([], [], None),
    ],
)
def test_what_fits_on_a_parent(removed: list[str], written: list[str], expected: str | None) -> None:
    assert misfit(["a/b.py", "a/c.py", "top.py"], removed, written) == expected
