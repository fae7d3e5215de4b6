"""Plays an agent: it works on one tuple through the gateway, well or badly, as the table below has it.

``python3 agent.py TASK.VARIANT.REPETITION MCP_CONFIGURATION``; the prompt comes on standard input.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mcp import Server

HOW = {
    "rename.plain.2": "forgetful",
    "rename.plain.3": "crashing",
    "signature.plain.2": "stubborn",
    "signature.plain.3": "hanging",
    "signature.guided.3": "careless",
    "off-by-one.plain.1": "hasty",
    "off-by-one.plain.3": "provider",
}
"""Which tuples go wrong, and how; all others go well."""


def rename(server: Server, how: str) -> None:
    """Rename a function everywhere, or not quite."""
    names = [
        name for name in server.call("list")["stdout"].split() if how != "forgetful" or name != "NOTES.md"
    ]
    for number, name in enumerate(names):
        if how == "crashing" and number == 2:
            raise RuntimeError("the agent broke")
        edit(server, name, lambda text: text.replace("total_price", "order_total"))


def signature(server: Server, how: str) -> None:
    """Give a function a parameter, and its callers too; one of the files changes underneath."""
    edit(server, "notify.py", with_urgent)
    edit(server, "digest.py", lambda text: text.replace("lines))", "lines), urgent=False)"))
    read = server.call("read", path="alerts.py")
    if how == "hanging":
        time.sleep(3600)
    written = write(server, "alerts.py", urgent(read["stdout"]), read["sha256"])
    if written["code"] == "stale" and how != "stubborn":
        again = server.call("read", path="alerts.py")
        # The careless one looks at the digest alone, and undoes what somebody else did.
        text = read["stdout"] if how == "careless" else again["stdout"]
        write(server, "alerts.py", urgent(text), again["sha256"])


def off_by_one(server: Server, how: str) -> None:
    """Mend a count, for the case in the prompt or for all."""
    if how == "provider":
        print(
            json.dumps({"type": "provider-error", "error": {"type": "overloaded", "status": 529}}), flush=True
        )
        sys.exit(1)
    right = "(items + size - 1) // size" if how != "hasty" else "items // size"
    edit(server, "pages.py", lambda text: text.replace("items // size + 1", right))


def edit(server: Server, name: str, change: Callable[[str], str]) -> None:
    """Change a file that nobody else changes."""
    read = server.call("read", path=name)
    write(server, name, change(read["stdout"]), read["sha256"])


def write(server: Server, name: str, content: str, expected: str) -> dict[str, Any]:
    """Write a file over the one that was read."""
    return server.call("write", path=name, content=content, expected_sha256=expected)


def with_urgent(text: str) -> str:
    """Give ``send`` its parameter."""
    text = text.replace("text: str)", "text: str, *, urgent: bool)")
    return text.replace('f"{receiver}: {text}"', "f\"{'!' if urgent else ''}{receiver}: {text}\"")


def urgent(text: str) -> str:
    """Make every alert urgent."""
    return text.replace('}")', '}", urgent=True)')


def main(label: str, configuration: str) -> None:
    """Work on one tuple."""
    sys.stdin.read()
    task = label.split(".")[0]
    server = Server(configuration)
    work = {"rename": rename, "signature": signature, "off-by-one": off_by_one}[task]
    work(server, HOW.get(label, "well"))
    if "call" in server.tools:
        server.call("call", program="test", argv=[])
    print(json.dumps({"type": "done"}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
