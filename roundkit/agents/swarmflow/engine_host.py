"""Runs one SwarmFlow script with the engine, in a boundary; asks roundkit to perform its workers' calls.

This file runs where roundkit is not installed: standard library, and the engine's own modules. It speaks
JSON, a line each, over its standard input and output. In: one line that says what to run, then an answer a
call. Out: ``call`` and ``cancel`` as the engine makes and drops them, ``log``, and at last ``result`` or
``error``.

The engine's parent packages are not imported: they need some forty packages more, which the engine does not.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
import types
from typing import Any

ENGINE = "openjiuwen.agent_teams.workflow.engine"


def load_engine(folder: str) -> Any:
    """Import the engine from a folder of installed packages, without what its parent packages import."""
    sys.path.insert(0, folder)
    names = ENGINE.split(".")
    for depth in range(1, len(names)):
        name = ".".join(names[:depth])
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(folder, *names[:depth])]  # noqa: PTH118
        sys.modules[name] = module
    return importlib.import_module(ENGINE)


class Line:
    """The two ends of the conversation with roundkit."""

    def __init__(self) -> None:
        # Whatever the engine or the script prints goes to standard error, so that it is no message.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0

    def say(self, **message: Any) -> None:
        """Send one message."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    async def ask(self, lane: str) -> Any:
        """Have a worker's call performed, and return the answer."""
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.say(call=number, lane=lane)
        try:
            return await answer
        except asyncio.CancelledError:
            self.say(cancel=number)
            raise
        finally:
            self._waiting.pop(number, None)

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand answers to the calls that wait for them, until roundkit hangs up."""
        for line in sys.stdin:
            message = json.loads(line)
            loop.call_soon_threadsafe(self._answered, message)

    def _answered(self, message: Any) -> None:
        waiting = self._waiting.get(message["call"])
        if waiting is not None and not waiting.done():
            waiting.set_result(message)


def lane_backend(engine: Any, line: Line) -> Any:
    """Return the engine's backend whose workers are roundkit's attempts."""

    class LaneBackend(engine.AgentBackend):  # type: ignore[misc]
        """One call of a worker is one attempt of its lane."""

        async def run(self, prompt: str, opts: Any, schema_json: Any, *, call_key: Any = None) -> Any:
            """Have roundkit perform the call; a refused attempt is a worker that declines."""
            answer = await line.ask(str(opts.get("label")))
            if answer.get("refused"):
                return engine.AgentResult(skipped=True)
            if answer.get("failed"):
                raise RuntimeError(answer["failed"])
            return engine.AgentResult(structured=answer["report"])

    return LaneBackend()


async def main(order: Any, line: Line) -> Any:
    """Run the script that roundkit ordered and return what it returns."""
    engine = load_engine(order["engine"])
    listener = threading.Thread(target=line.listen, args=(asyncio.get_running_loop(),), daemon=True)
    listener.start()
    journal = order["journal"]
    return await engine.run_workflow(
        order["script"],
        args=order["args"],
        backend=lane_backend(engine, line),
        strict=True,
        cap=order["cap"],
        run_id=order["run_id"],
        journal_path=journal,
        resume=journal,
        log_sink=lambda message: line.say(log=str(message)),
    )


if __name__ == "__main__":
    conversation = Line()
    try:
        conversation.say(result=asyncio.run(main(json.loads(sys.stdin.readline()), conversation)))
    except BaseException as error:
        conversation.say(error=f"{type(error).__name__}: {error}")
        raise
