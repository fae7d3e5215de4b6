"""The example of a policy pilot: a synthetic program, scripted agents, and the owner's three files."""

from __future__ import annotations

import os
from pathlib import Path

import jinja2
from ruamel.yaml.comments import CommentedMap

from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write, whole_folder
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml, read_yaml
from roundkit.rounds.shipped_program import make_program

_TEMPLATE = "pilot-policy"
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
        OSError, CommandFailed: it cannot be written; nothing of it is there then.
    """
    cores = sorted(os.sched_getaffinity(0))[-_SETS:]
    if len(cores) < _SETS:
        raise refuse(
            "device-missing", "the example measures on two cores", place="--out", remedy="allow it two cores"
        )
    if out.exists():
        raise refuse("exists", f"{out} exists", place="--out", remedy="name a folder that does not exist")
    with whole_folder(out) as partial:
        _fill(partial, python, repetitions, cores)
    return out / "pilot.yaml"


def _fill(out: Path, python: str, repetitions: int | None, cores: list[int]) -> None:
    source = shipped("templates") / _TEMPLATE
    incumbent = make_program(
        source / "program", out / "program", what="example", message="A program of knobs"
    )
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


def _set(content: CommentedMap, key: str, value: object) -> None:
    content[key] = value
