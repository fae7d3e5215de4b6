"""Ask packaging what an installer asks: versions in order, specifiers, requirements, file names.

One run asks the same questions in the same order, so that answers of two releases can be compared. They are
kept as answers.json in the folder ROUNDKIT_OUTPUT_DIR.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

ENDINGS = ("", "", "", "", "", "", ".post1", "rc1", "a2", ".dev3", "+local.1")
WORDS = ("fast", "tiny", "json", "http", "data", "core", "py", "test", "web", "tools")
OPERATORS = (">=", "<", "!=", "==", "~=", "<=", ">")
MARKERS = (
    'python_version >= "3.9"',
    'sys_platform == "win32"',
    'python_version < "3.8" and platform_machine == "x86_64"',
    'extra == "test" or (os_name == "posix" and implementation_name != "pypy")',
)
ENVIRONMENT = {
    "python_version": "3.11",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "extra": "test",
}


def a_version(draw: random.Random) -> str:
    """Make up a release's version."""
    numbers = [draw.randrange(30) for _ in range(draw.choice((2, 3, 3, 3, 4)))]
    return ".".join(map(str, numbers)) + draw.choice(ENDINGS)


def a_specifier(draw: random.Random) -> str:
    """Make up one bound of a range."""
    return f"{draw.choice(OPERATORS)}{draw.randrange(30)}.{draw.randrange(30)}"


def a_name(draw: random.Random) -> str:
    """Make up a project's name as somebody writes it."""
    return draw.choice("-_.").join(draw.choice(WORDS).title() for _ in range(3))


def order(draw: random.Random) -> list[str]:
    """Sort the releases of a project."""
    releases = [Version(a_version(draw)) for _ in range(60)]
    return [str(release) for release in sorted(releases)]


def choose(draw: random.Random) -> list[str]:
    """Find the releases that a range allows."""
    wanted = SpecifierSet(",".join(a_specifier(draw) for _ in range(2)))
    return list(wanted.filter([a_version(draw) for _ in range(60)]))


def allow(draw: random.Random) -> list[bool]:
    """Tell whether one installed release is within a range."""
    wanted = SpecifierSet(a_specifier(draw))
    return [wanted.contains(a_version(draw)) for _ in range(4)]


def require(draw: random.Random) -> list[str | bool | None]:
    """Read one line of a requirements file."""
    extras = draw.choice(("", "[test]", "[test,docs]"))
    specifiers = ",".join(a_specifier(draw) for _ in range(draw.randrange(3)))
    read = Requirement(f"{a_name(draw)}{extras} {specifiers}; {draw.choice(MARKERS)}")
    return [str(read), read.marker.evaluate(ENVIRONMENT) if read.marker else None]


def identify(draw: random.Random) -> list[str]:
    """Tell a wheel's project and release from its file name."""
    name = canonicalize_name(a_name(draw))
    file = f"{name.replace('-', '_')}-{draw.randrange(9)}.{draw.randrange(9)}-py3-none-any.whl"
    project, release, _, tags = parse_wheel_filename(file)
    return [project, str(release), *map(str, tags)]


ASKED = {order: 200, choose: 200, allow: 800, require: 4000, identify: 2000}


def main() -> None:
    """Ask everything once and keep the answers."""
    draw = random.Random(7)  # noqa: S311 - the same questions in every run
    answers = {
        f"{question.__name__} {number}": question(draw)
        for question, count in ASKED.items()
        for number in range(count)
    }
    Path(os.environ["ROUNDKIT_OUTPUT_DIR"], "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
