"""The presets of the command driver: templates for agents that have no driver of their own."""

from __future__ import annotations

from pydantic import ValidationError

from roundkit.core.errors import refuse
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.models.lane_command import CommandTemplate


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets that ship with roundkit."""
    return tuple(sorted(path.stem for path in (shipped("templates") / "presets").glob("*.yaml")))


def load_preset(name: str) -> CommandTemplate:
    """Return a preset.

    Raises:
        Refused: ``unknown-preset``, or ``preset-broken``: its file was edited and is no template any more.
    """
    if name not in preset_names():
        raise refuse(
            "unknown-preset",
            f"there is no preset {name!r}",
            place="agent.preset",
            remedy=f"the presets are: {', '.join(preset_names())}; or write `agent.command` yourself",
        )
    path = shipped("templates") / "presets" / f"{name}.yaml"
    _, content = read_yaml(path)
    try:
        return CommandTemplate.model_validate(plain(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise refuse("preset-broken", f"{where}: {first['msg']}", place=str(path)) from None
