"""A draft agent that is a script: what it plays for each target stands in the target's data.

`plays` (one part, or one for each attempt): `right`, `wrong-symbol`, `wrong-body`, `truncated`, `crashing`,
`slow` or `silent`. `source` is the right draft; `symbol` and `other_symbol`, `body` and `other_body` say what
the wrong ones replace, and `seconds` how slow it is. With PROVIDER_URL each draft is one request there.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

TRIES = 50
PAUSE_S = 0.05


def main() -> None:
    """Draft every target of the task, in order."""
    task = json.loads(Path(sys.argv[1]).read_text())
    drafts, suffix = Path(sys.argv[2]), sys.argv[3]
    told = Events(task)
    for target in task["targets"]:
        data = target["data"]
        part = data.get("plays", "right")
        if isinstance(part, list):
            part = part[min(task["attempt"], len(part)) - 1]
        told.ask(target)
        if part == "crashing":
            os.abort()
        if part == "slow":
            time.sleep(data.get("seconds", 1.0))
        told.answer(len(data["source"]), truncated=part == "truncated")
        if part != "silent":
            (drafts / f"{target['name']}{suffix}").write_text(played(part, target))


def played(part: str, target: dict) -> str:
    """Return the draft that a part hands in."""
    data, source = target["data"], target["data"]["source"]
    if part == "wrong-symbol":
        return source.replace(data["symbol"], data["other_symbol"])
    if part == "wrong-body":
        return source.replace(data["body"], data["other_body"])
    if part == "truncated":
        return source[: len(source) // 2]
    return source


class Events:
    """Tells of each request, in the file that the drafter reads."""

    def __init__(self, task: dict) -> None:
        self.task = task
        self.url = os.environ.get("PROVIDER_URL")
        self.file = Path(os.environ["ROUNDKIT_EVENTS"])

    def ask(self, target: dict) -> None:
        """Ask for one draft, again after each 429."""
        for _ in range(TRIES):
            self.tell("post")
            refused = self.post(target) if self.url else None
            if refused is None:
                return
            self.tell("429", source=refused)
            time.sleep(PAUSE_S)

    def answer(self, tokens: int, *, truncated: bool) -> None:
        """Tell of an answer."""
        self.tell("answer", tokens=min(tokens, self.task["turn_tokens"]), truncated=truncated)

    def post(self, target: dict) -> str | None:
        """Ask the provider; return who refused, or None."""
        body = json.dumps({
            "model": self.task["model"], "group": target["group"], "name": target["name"],
            "max_tokens": self.task["turn_tokens"],
        })  # fmt: skip
        asked = urllib.request.Request(f"{self.url}/v1/draft", data=body.encode(), method="POST")  # noqa: S310
        try:
            with urllib.request.urlopen(asked) as reply:  # noqa: S310
                reply.read()
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise
            return error.headers.get("x-refused-by", "provider")
        return None

    def tell(self, event: str, **more: object) -> None:
        """Append one line."""
        row = {
            "at_s": time.time(), "event": event, "tag": self.task["tag"], "shard": self.task["shard"],
            "model": self.task["model"], **more,
        }  # fmt: skip
        with self.file.open("a") as stream:
            stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
