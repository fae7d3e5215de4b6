"""A package that plays the SwarmFlow engine: it calls one worker a lane, three times at most, and reports."""

from __future__ import annotations

from pathlib import Path

from roundkit.agents.swarmflow.engine import ENGINE_PACKAGE

_SOURCE = """
import asyncio, json

class AgentBackend:
    pass

class AgentResult:
    def __init__(self, structured=None, skipped=False):
        self.structured, self.skipped = structured, skipped

async def run_workflow(script, *, args, backend, log_sink, **options):
    log_sink("a stub of the engine")
    {before}
    async def fill(lane):
        for _ in range(3):
            try:
                return (await backend.run("", {{"label": lane}}, None)).structured
            except RuntimeError as error:
                log_sink(str(error))
    lanes = [lane["id"] for lane in json.loads(args)["lanes"] if lane["harness"] == "swarmflow"]
    reports = await asyncio.gather(*map(fill, lanes))
    return {{"reports": [report for report in reports if report is not None]}}
"""


def stub_engine(root: Path, *, before: str = "pass") -> Path:
    """Make a folder of installed packages that holds it.

    Args:
        root: Folder to make it in.
        before: A statement that it runs first.
    """
    folder = root / "engine"
    package = folder / ENGINE_PACKAGE
    package.parent.mkdir(parents=True)
    package.write_text(_SOURCE.format(before=before))
    return folder
