"""Runs confined commands as whatever user started it: one JSON line in, one JSON line out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.host.confine import ConfinementUnavailable, Limits, Mount, Network, Overlay, confined_execute


def overlay(layers: list[str], at: str, changes: str | None) -> Overlay:
    return Overlay(tuple(map(Path, layers)), Path(at), None if changes is None else Path(changes))


def answer(asked: dict[str, object]) -> str:
    try:
        done = confined_execute(
            asked["argv"],
            cwd=Path(asked["cwd"]),
            writable=[Mount(Path(source), Path(at)) for source, at in asked["writable"]],
            readable=[Mount(Path(source), Path(at)) for source, at in asked["readable"]],
            deadline=Deadline.after(asked["deadline_s"]),
            env=asked["env"],
            limits=Limits.model_validate_json(asked["limits"]),
            cpus=None if asked["cpus"] is None else frozenset(asked["cpus"]),
            network=Network(asked["network"], tuple(asked["hosts"])),
            overlay=None if asked["overlay"] is None else overlay(*asked["overlay"]),
        )
    except ConfinementUnavailable as error:
        return json.dumps({"unavailable": [error.reason, error.detail, error.remedy]})
    except Refused as error:
        return json.dumps({"refused": [[refusal.code, refusal.message] for refusal in error.refusals]})
    return done.model_dump_json()


if __name__ == "__main__":
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)
