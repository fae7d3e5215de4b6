"""Runs a round's script by the engine's own mock backend, whose fixtures perform scripted lanes.

Run as a program: ``swarm_fixtures.py ENGINE SCRIPT LAUNCH_JSON LANES``, where ``LANES`` is a JSON object from
lane to the knob that its worker submits. It prints what the script returned, or the engine's refusal.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(folder: str, script: str, manifest: str, lanes: dict[str, Any]) -> None:
    """Run the script with one fixture a lane; a lane without one is left to the mock's invention."""
    from roundkit.agents.swarmflow.engine_host import load_engine

    engine = load_engine(folder)
    clones = {lane["id"]: Path(lane["clone"]) for lane in json.loads(manifest)["lanes"]}

    def fixture(lane: str) -> Any:
        def perform(*_: Any) -> dict[str, Any]:
            clone = clones[lane]
            (clone / "knobs" / f"{lane}.json").write_text(json.dumps({"value": lanes[lane], "mode": None}))
            argv = [sys.executable, str(clone / ".roundkit" / "round"), "submit"]
            answer = json.loads(subprocess.run(argv, cwd=clone, capture_output=True, check=True).stdout)
            return {"lane": lane, "tickets": [answer["ticket"]], "notes": "scripted"}

        return perform

    backend = engine.MockBackend(fixtures={lane: fixture(lane) for lane in lanes})
    try:
        run = engine.run_workflow(script, args=manifest, backend=backend, strict=True, cap=len(clones))
        print(json.dumps({"result": asyncio.run(run)}))
    except engine.EngineError as error:
        print(json.dumps({"refused": f"{type(error).__name__}: {error}"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).read_text(), json.loads(sys.argv[4]))
