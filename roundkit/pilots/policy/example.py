"""The example of a policy pilot: a synthetic program, scripted agents, and the owner's three files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import jinja2
from ruamel.yaml.comments import CommentedMap

from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository, identity_environment
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml, read_yaml

_TEMPLATE = "pilot-policy"
_COMMIT_DATE = "2026-01-01T00:00:00Z"
_SETS = 2
_LANES = ("L1", "L2", "L3", "L4")


def write_example(out: Path, *, python: str = "/usr/bin/python3", repetitions: int | None = None) -> Path:
    """Write a program's repository and the files of a policy pilot on it; return the pilot's file.

    Args:
        out: The folder to make.
        python: Interpreter of program and agents, an absolute path.
        repetitions: Runs of each arm; what the template says unless given.

    Raises:
        Refused: ``exists``, or ``device-missing``: this process may not run on two cores.
    """
    cores = sorted(os.sched_getaffinity(0))[-_SETS:]
    if len(cores) < _SETS:
        raise refuse(
            "device-missing", "the example measures on two cores", place="--out", remedy="allow it two cores"
        )
    if out.exists():
        raise refuse("exists", f"{out} exists", place="--out", remedy="name a folder that does not exist")
    source = shipped("templates") / _TEMPLATE
    incumbent = _make_program(source / "program", out / "program")
    values = {
        "lanes": _LANES,
        "incumbent": incumbent,
        "python": python,
        "agent_python": python,
        "cores": cores,
    }
    # The templates are YAML, not HTML: there is nothing to escape for a browser.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701
    for name in ("campaign.yaml", "round.yaml"):
        template = environment.from_string((source / f"{name}.j2").read_text())
        atomic_write(out / name, template.render(values).encode())
    _, pilot = read_yaml(source / "pilot.yaml")
    if repetitions is not None:
        _set(pilot, "repetitions", repetitions)
    atomic_write(out / "pilot.yaml", dump_yaml(pilot))
    return out / "pilot.yaml"


def _set(content: CommentedMap, key: str, value: object) -> None:
    content[key] = value


def _make_program(source: Path, target: Path) -> str:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    repository = Repository(target)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.git("add", "--all")
    identity = identity_environment("roundkit example", "example@localhost", _COMMIT_DATE)
    repository.git("commit", "--quiet", "--message", "A program of knobs", env=identity)
    return repository.git("rev-parse", "HEAD").text
