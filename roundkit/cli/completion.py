"""Tab completion in zsh from the first Tab on; Typer's script only registers itself at that one."""

from __future__ import annotations

from typer import _completion_shared as shared

_CALLED_WHEN_LOADED = """
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
fi
"""


def complete_at_once() -> None:
    """Have the script complete, too, when zsh loads it: at the first Tab of a session."""
    scripts: dict[str, str] = getattr(shared, "_completion_scripts", {})
    if "zsh" in scripts and _CALLED_WHEN_LOADED not in scripts["zsh"]:
        scripts["zsh"] += _CALLED_WHEN_LOADED
