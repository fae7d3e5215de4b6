"""``python -m support.waves_evidence DIR``: the committed wave campaign, made anew in an empty folder.

The example campaign of C functions, its scripted agents asking a stub of a provider that takes its time and
refuses now and then. ``DIR/export`` is what is committed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support.wave_provider import Refuser, WaveProvider, wave_provider

from roundkit.core.yamlfile import dump_yaml, read_yaml
from roundkit.waves.example import make_example
from roundkit.waves.export import export_campaign
from roundkit.waves.folder import open_campaign

TARGETS = 200
ANSWER_S = 25.0
"""How long the stub thinks: a wave lasts long enough for a rate."""


class Moody:
    """Refuses in bursts: of the pool in the second and fourth wave, of our account once in the fifth."""

    def __init__(self) -> None:
        self.provider: WaveProvider | None = None
        self.asked = 0

    def __call__(self, number: int, _: dict[str, Any]) -> Refuser | None:
        assert self.provider is not None
        part, place = divmod(len(self.provider.answered), TARGETS // 5)
        if part in {1, 3} and place in range(4, 16) and number % 3 == 0:
            return "provider"
        if part == 4 and place == 8 and not self.asked:
            self.asked = number
            return "platform"
        return None


class Slow(WaveProvider):
    """Thinks before it answers, each request beside the others."""

    def _take(self, request: dict[str, Any]) -> Refuser | None:
        refused = super()._take(request)
        if refused is None:
            time.sleep(ANSWER_S)
        return refused


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    folder.chmod(0o711)
    make_example(folder / "example", TARGETS)
    moody = Moody()
    with wave_provider(refuse=moody, kind=Slow) as provider:
        moody.provider = provider
        _ask(folder / "example" / "wave-plan.yaml", provider)
        subprocess.run(
            [
                sys.executable, "-m", "roundkit", "waves", "run", folder / "example" / "wave-plan.yaml",
                "--dir", folder / "campaign",
            ],
            check=True,
        )  # fmt: skip
    export_campaign(open_campaign(folder / "campaign"), folder / "export")


def _ask(plan: Path, provider: WaveProvider) -> None:
    _, content = read_yaml(plan)
    content["python"] = "/usr/bin/python3"
    content["draft"]["agent"] = {
        "provenance": "stub", "hosts": [provider.host], "environment": {"PROVIDER_URL": provider.url},
    }  # fmt: skip
    content["draft"]["deadline_s"] = 600
    content["gate"]["jobs"] = 2
    plan.write_bytes(dump_yaml(content))


if __name__ == "__main__":
    main()
