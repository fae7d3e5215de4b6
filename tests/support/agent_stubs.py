"""Programs that play `claude` and `codex`: they do what a script says, and print the events of the real ones.

A stub lies in a folder of its own with `script.json`: for each lane a list of attempts, each a list of steps.
What a run was given (arguments, folder, variables, standard input) it leaves in its home.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Step = Mapping[str, Any]
Script = Mapping[str, Sequence[Sequence[Step]]]

USAGE = {"input": 100, "cached": 40, "written": 10, "output": 50}
"""Tokens of one answer of a stub; codex counts cached ones among its input and writes no cache."""
USD_OF_AN_ANSWER = 0.004
CLAUDE_VERSION = "9.9.1 (Claude Code)"
CODEX_VERSION = "codex-cli 9.9.2"
CLAUDE_MODEL = "stub-claude-1"
CODEX_MODEL = "stub-codex-1"

_CLAUDE_HELP = (
    "--output-format --verbose --model --effort --max-budget-usd --permission-mode --strict-mcp-config "
    "--setting-sources --allowedTools"
)
_CODEX_HELP = "--json --model --config --cd --dangerously-bypass-approvals-and-sandbox"

PROGRAM = r'''#!/usr/bin/python3
import json, os, signal, subprocess, sys, time, uuid

KIND = os.path.basename(__file__)
SCRIPT = json.load(open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "script.json")))
USAGE, USD = SCRIPT["usage"], SCRIPT["usd"]
words = sys.argv[1:]

if words == ["--version"]:
    print(SCRIPT["version"][KIND])
    sys.exit(SCRIPT.get("version_exit", 0))
if words[-1:] == ["--help"]:
    print("Options:", SCRIPT["help"][KIND])
    sys.exit(0)

lane = os.path.basename(os.getcwd())
number = len([name for name in os.listdir(os.environ["HOME"]) if name.startswith("attempt-")]) + 1
open(os.path.join(os.environ["HOME"], "attempt-%d" % number), "w").close()
seen = {"argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ), "stdin": sys.stdin.read()}
if KIND == "codex":
    seen["config"] = open(os.path.join(os.environ["CODEX_HOME"], "config.toml")).read()
with open(os.path.join(os.environ["HOME"], "seen-%d.json" % number), "w") as stream:
    json.dump(seen, stream)
attempts = SCRIPT["lanes"].get(lane, [[]])
steps = attempts[min(number, len(attempts)) - 1]
answers, denials, told = 0, 0, []
session = str(uuid.uuid4())


def say(event):
    print(json.dumps(event), flush=True)


def total(name):
    return answers * USAGE[name]


def roll():
    folder = os.path.join(os.environ["CODEX_HOME"], "sessions", "2026", "01", "01")
    os.makedirs(folder, exist_ok=True)
    usage = {"input_tokens": total("input") + total("cached"), "cached_input_tokens": total("cached"),
             "output_tokens": total("output")}
    with open(os.path.join(folder, "rollout-2026-01-01T00-00-00-%s.jsonl" % session), "a") as stream:
        if answers == 1:
            model = {"model": SCRIPT["codex_model"]}
            stream.write(json.dumps({"type": "turn_context", "payload": model}) + "\n")
        stream.write(json.dumps({"type": "event_msg", "payload": {
            "type": "token_count", "info": {"total_token_usage": usage}}}) + "\n")


def begin():
    if KIND == "claude":
        say({"type": "system", "subtype": "init", "session_id": session, "model": SCRIPT["claude_model"]})
    else:
        say({"type": "thread.started", "thread_id": session})
        say({"type": "turn.started"})


def answer(text):
    global answers
    answers += 1
    if KIND == "codex":
        roll()
        item = {"id": "i%d" % answers, "type": "agent_message", "text": text}
        return say({"type": "item.completed", "item": item})
    usage = {"input_tokens": USAGE["input"], "cache_read_input_tokens": USAGE["cached"],
             "cache_creation_input_tokens": USAGE["written"], "output_tokens": USAGE["output"]}
    for part in ("first", text):  # one message, told in two events
        say({"type": "assistant", "session_id": session, "parent_tool_use_id": None, "message": {
            "id": "m%d" % answers, "model": SCRIPT["claude_model"], "usage": usage,
            "content": [{"type": "text", "text": part}]}})


def result(subtype="success", error=False, text="done"):
    if KIND == "claude":
        model = {"inputTokens": total("input"), "outputTokens": total("output"), "costUSD": answers * USD,
                 "cacheReadInputTokens": total("cached"), "cacheCreationInputTokens": total("written")}
        say({"type": "result", "subtype": subtype, "is_error": error, "num_turns": answers, "result": text,
             "session_id": session, "total_cost_usd": answers * USD, "usage": {},
             "modelUsage": {SCRIPT["claude_model"]: model}, "permission_denials": [{}] * denials})
    elif error:
        say({"type": "turn.failed", "error": {"message": text}})
    else:
        say({"type": "turn.completed", "usage": {
            "input_tokens": total("input") + total("cached"), "cached_input_tokens": total("cached"),
            "output_tokens": total("output")}})


def tried(code):
    """Run a piece of Python that tells in `told` what it could do."""
    scope = {"told": told, "os": os}
    exec(code, scope)


def detach(marker):
    loop = "trap '' TERM HUP; while :; do sleep 1; done; : " + marker
    null = subprocess.DEVNULL
    for prefix in (["setsid"], ["setsid", "nohup"], []):
        subprocess.Popen([*prefix, "/bin/sh", "-c", loop], stdin=null, stdout=null, stderr=null,
                         start_new_session=not prefix)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sh", ["/bin/sh", "-c", loop])
        os._exit(0)


def main():
    global denials
    begin()
    for step in steps:
        if "write" in step:
            for path, content in step["write"].items():
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
                with open(path, "w") as stream:
                    stream.write(content)
        if "submit" in step:
            done = subprocess.run([".roundkit/round", "submit"], capture_output=True, text=True)
            told.append(json.loads(done.stdout))
        if "python" in step:
            tried(step["python"])
        if "print" in step:
            print(eval(step["print"]), flush=True)
            print(eval(step["print"]), file=sys.stderr, flush=True)
        if "denied" in step:
            denials += 1
        if "touch" in step:
            open(".roundkit/scratch/" + step["touch"], "w").close()
        if "detach" in step:
            detach(step["detach"])
        if "error" in step:
            say({"type": "error", "message": step["error"]})
        answer("step")
        with open(os.path.join(os.environ["HOME"], "told-%d.json" % number), "w") as stream:
            json.dump(told, stream)
        if "fail" in step:
            result("success", True, step["fail"])
            sys.exit(1)
        if "cap" in step:
            result(step["cap"], True)
            sys.exit(1)
        while "hang" in step:
            time.sleep(0.05)
        if "forever" in step:
            while True:
                answer("more")
                time.sleep(0.02)
        if "quit" in step:
            sys.exit(step["quit"])
    result()


main()
'''


def stub_folder(root: Path, lanes: Script, **changes: Any) -> Path:
    """Make a folder with the programs of all harnesses and their script, readable for everybody.

    Args:
        root: Folder to make it in.
        lanes: What the agent of each lane does at each of its attempts.
        changes: Entries of the script that differ from a well-behaved program's.
    """
    folder = root / "tools"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    script = {
        "lanes": lanes,
        "usage": USAGE,
        "usd": USD_OF_AN_ANSWER,
        "version": {"claude": CLAUDE_VERSION, "codex": CODEX_VERSION},
        "help": {"claude": _CLAUDE_HELP, "codex": _CODEX_HELP},
        "claude_model": CLAUDE_MODEL,
        "codex_model": CODEX_MODEL,
        **changes,
    }
    (folder / "script.json").write_text(json.dumps(script))
    for name in ("claude", "codex", "command"):
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)
    return folder


def seen(root: Path, lane: str, attempt: int = 1) -> dict[str, Any]:
    """Return what the stub of a lane was given: arguments, folder, variables, standard input."""
    content: dict[str, Any] = json.loads((root / "round/homes" / lane / f"seen-{attempt}.json").read_bytes())
    return content


def told(root: Path, lane: str, attempt: int = 1) -> list[Any]:
    """Return what the stub of a lane was told by the wrapper, or told itself."""
    content: list[Any] = json.loads((root / "round/homes" / lane / f"told-{attempt}.json").read_bytes())
    return content
