"""Tab in the other shells: a real one of each on a terminal; bash is tried where roundkit is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.terminals import Terminal
from support.tools import needs_fish, needs_zsh

READY = "ready> "
FISH = f"function fish_prompt; echo -n '{READY}'; end\nset -g fish_greeting\n"
COMMAND = "#!{python}\nfrom roundkit.cli import main\nmain()\n"


@pytest.mark.parametrize(
    "shell", [pytest.param("zsh", marks=needs_zsh), pytest.param("fish", marks=needs_fish)]
)
def test_the_first_tab_completes_a_command(shell: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".config/fish").mkdir(parents=True)
    (tmp_path / ".config/fish/config.fish").write_text(FISH)
    command = tmp_path / "bin/roundkit"
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ZDOTDIR"))}
    environment = {
        **kept,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PS1": READY,
    }
    install = [shell, "-c", "roundkit --install-completion; true"]
    subprocess.run(install, env=environment, cwd=tmp_path, check=True, capture_output=True)
    terminal = Terminal([shell, "-i"], cwd=tmp_path, environment=environment, own=True)
    terminal.wait_for(READY)
    terminal.type("roundkit pi\t")
    terminal.wait_for("lot ")
    terminal.type("sim\t")
    terminal.wait_for("ulate ")
    terminal.type("--help\nexit\n")
    assert terminal.end() == 0
    assert "power and cost" in terminal.printed
